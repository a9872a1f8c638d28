// Interprocess events: the place of the last record stands in a page that all processes with the
// event share; waiting for it goes through a stream of one's own, which the server orders after
// that place. Under the library's lock.
#pragma once

#include <atomic>
#include <memory>

#include "simdriver/cuda/work.h"

namespace aliquot::simdriver {

struct SharedPlace {
  std::atomic<std::uint32_t> version;  // odd while it is being changed
  std::atomic<std::uint32_t> slot;
  std::atomic<std::uint64_t> context_key;  // 0: never recorded
  std::atomic<std::uint64_t> seq;
};

struct EventCell {
  BlockKey key{};
  SharedPlace* place = nullptr;
  EventCell() = default;
  EventCell(const EventCell&) = delete;
  EventCell& operator=(const EventCell&) = delete;
  ~EventCell();
};

CUresult make_event_cell(const DeviceView& device, std::shared_ptr<EventCell>& cell);
CUresult open_event_cell(const BlockKey& key, std::shared_ptr<EventCell>& cell);

void write_place(EventCell& cell, const Elsewhere& place);
// False: never recorded.
bool read_place(const EventCell& cell, Elsewhere& place);

// Brings what another process recorded into `event`: its place in a stream of this context that
// waits for it.
CUresult follow_cell(Event& event);

}  // namespace aliquot::simdriver
