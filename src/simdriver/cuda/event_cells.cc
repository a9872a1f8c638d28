#include "simdriver/cuda/event_cells.h"

#include <sys/mman.h>

namespace aliquot::simdriver {
namespace {

CUresult map_cell(Answer& answer, std::shared_ptr<EventCell>& cell) {
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  void* at = mmap(nullptr, sizeof(SharedPlace), PROT_READ | PROT_WRITE, MAP_SHARED,
                  answer.fds[0].get(), 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OPERATING_SYSTEM;
  cell = std::make_shared<EventCell>();
  cell->key = reply->key;
  cell->place = static_cast<SharedPlace*>(at);
  return CUDA_SUCCESS;
}

}  // namespace

EventCell::~EventCell() {
  if (place != nullptr) munmap(place, sizeof(SharedPlace));
  library().ask(Op::kBlockRelease, BlockId{key.block});
}

CUresult make_event_cell(const DeviceView& device, std::shared_ptr<EventCell>& cell) {
  Answer answer;
  const MemoryRequest request{device.server, MemoryKind::kCell, 1};
  if (const CUresult result = library().ask(Op::kBlockCreate, request, &answer)) return result;
  return map_cell(answer, cell);
}

CUresult open_event_cell(const BlockKey& key, std::shared_ptr<EventCell>& cell) {
  Answer answer;
  if (library().ask(Op::kBlockOpenKey, key, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return map_cell(answer, cell);
}

void write_place(EventCell& cell, const Elsewhere& place) {
  SharedPlace& shared = *cell.place;
  shared.version.fetch_add(1);
  shared.slot.store(place.slot, std::memory_order_relaxed);
  shared.context_key.store(place.context_key, std::memory_order_relaxed);
  shared.seq.store(place.seq, std::memory_order_relaxed);
  shared.version.fetch_add(1, std::memory_order_release);
}

bool read_place(const EventCell& cell, Elsewhere& place) {
  const SharedPlace& shared = *cell.place;
  // A writer that was killed half-way leaves an odd version: then what stands there is taken.
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t before = shared.version.load(std::memory_order_acquire);
    place.slot = shared.slot.load(std::memory_order_relaxed);
    place.context_key = shared.context_key.load(std::memory_order_relaxed);
    place.seq = shared.seq.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && shared.version.load(std::memory_order_relaxed) == before) break;
  }
  place.stream = nullptr;
  return place.context_key != 0;
}

CUresult follow_cell(Event& event) {
  Elsewhere place;
  if (event.cell == nullptr || !read_place(*event.cell, place)) return CUDA_SUCCESS;
  const bool known = event.followed_key == place.context_key && event.followed_slot == place.slot &&
                     event.followed_seq == place.seq;
  if (known) return CUDA_SUCCESS;
  Context& context = *event.context;
  if (context.follower == nullptr) {
    const CUresult result = open_stream(context, CU_STREAM_NON_BLOCKING, 0, context.follower);
    if (result != CUDA_SUCCESS) return result;
  }
  submit_wait(*context.follower, place);
  event.followed_key = place.context_key;
  event.followed_slot = place.slot;
  event.followed_seq = place.seq;
  event.recorded_in = context.pages;
  event.context_key = context.key;
  event.slot = context.follower->slot;
  event.seq = context.follower->submitted;
  event.stream = context.follower;
  return CUDA_SUCCESS;
}

}  // namespace aliquot::simdriver
