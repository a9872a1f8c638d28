#include "inventory/xids.h"

#include <algorithm>
#include <array>

namespace aliquot::inventory {
namespace {

constexpr std::array kXids = {
#define XID(number, klass, reset, what) Xid{number, XidClass::klass, reset, what},
#include "inventory/xids.def"
#undef XID
};

}  // namespace

Xid describe_xid(unsigned number) {
  const auto found = std::ranges::lower_bound(kXids, number, {}, &Xid::number);
  if (found != kXids.end() && found->number == number) return *found;
  return {number, XidClass::kDriver, false, "not in the table of this version"};
}

std::span<const Xid> known_xids() { return kXids; }

std::string_view name_of(XidClass klass) {
  switch (klass) {
    case XidClass::kApplication:
      return "application";
    case XidClass::kDriver:
      return "driver";
    case XidClass::kHardware:
      return "hardware";
  }
  return "";
}

}  // namespace aliquot::inventory
