// What an XID means for the GPU that reported it: the program's own fault, or the GPU's.
//
// The table is xids.def, with its source. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace aliquot::inventory {

enum class XidClass : std::uint8_t {
  kApplication,  // one program is lost, the GPU serves the next
  kDriver,       // firmware or driver: the GPU is in doubt
  kHardware,     // chip, memory, link or power
};

struct Xid {
  unsigned number = 0;
  XidClass klass = XidClass::kDriver;
  bool needs_reset = false;  // of the GPU, or a reboot
  std::string_view what;
};

// A number that the table does not know is a driver fault: unknown is not harmless.
Xid describe_xid(unsigned number);

std::span<const Xid> known_xids();

std::string_view name_of(XidClass klass);

}  // namespace aliquot::inventory
