// The broker reads a ledger of any content: every read ends, is clamped, and the ledger is empty
// afterwards, because no process of the lease lives.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "broker/lease.h"

namespace {

using namespace aliquot;
using namespace aliquot::broker;

constexpr unsigned kGpus = 2, kSlots = 8;

Lease& lease() {
  static const std::unique_ptr<Lease> one = [] {
    std::string name = (std::filesystem::temp_directory_path() / "aliquot-fuzz-XXXXXX").string();
    LeaseRequest request;
    request.name = "fuzz";
    request.slots = kSlots;
    std::vector<LeaseGpu> gpus(kGpus);
    for (LeaseGpu& gpu : gpus) gpu.limit_bytes = 1000;
    if (mkdtemp(name.data()) == nullptr) std::abort();
    auto made = Lease::create(std::filesystem::path(name) / "fuzz", request, gpus, {});
    std::filesystem::remove_all(name);  // the mappings stay
    if (!made) std::abort();
    return std::move(*made);
  }();
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Lease& l = lease();
  const wire::LedgerView ledger = l.files().ledger();
  const std::size_t bytes = wire::LedgerView::size_bytes(kGpus, kSlots);
  auto* base = reinterpret_cast<unsigned char*>(&ledger.header());
  std::memset(base, 0, bytes);
  // Repeated, so that short inputs reach the cells too.
  for (std::size_t at = 0; size != 0 && at < bytes; at += size)
    std::memcpy(base + at, data, std::min(size, bytes - at));
  for (unsigned gpu = 0; gpu < kGpus; ++gpu)
    if (!l.set_limit(gpu, 1000)) std::abort();
  const LeaseRow row = l.row();
  for (const UsageRow& usage : row.gpus)
    if (usage.used_bytes > wire::kByteMask) std::abort();
  l.check_images();
  for (int i = 0; i < 30; ++i) l.audit();  // three of which look, since nobody is attached
  for (unsigned gpu = 0; gpu < kGpus; ++gpu)
    if (l.used_bytes(gpu) != 0) std::abort();
  return 0;
}
