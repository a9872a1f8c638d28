#include "node/preferred_slots.h"

#include <algorithm>
#include <map>

#include "node/slots.h"
#include "topology/search.h"

namespace aliquot::node {
namespace {

// Of one GPU, by its place on the board.
struct FreeSlots {
  std::vector<unsigned> numbers;  // ascending
  bool taken = false;             // a slot of it is among those chosen
};
using ByGpu = std::map<std::size_t, FreeSlots>;

std::size_t place_of(const DeviceBoard::Content& board, const std::string& uuid) {
  return static_cast<std::size_t>(std::ranges::find(board.gpus, uuid, &OfferedGpu::uuid) -
                                  board.gpus.begin());
}

ByGpu free_slots(const DeviceBoard::Content& board, const SlotQuestion& question) {
  ByGpu gpus;
  for (const std::string& id : question.available) {
    const auto slot = parse_slot_id(id);
    if (!slot) continue;
    const std::size_t place = place_of(board, slot->uuid);
    if (place == board.gpus.size()) continue;
    const bool must = std::ranges::find(question.must, id) != question.must.end();
    gpus[place].taken |= must;
    if (!must) gpus[place].numbers.push_back(slot->number);
  }
  for (auto& [place, free] : gpus) std::ranges::sort(free.numbers);
  return gpus;
}

// The GPUs that a container without any would best get one slot each of.
std::vector<std::size_t> best_together(const DeviceBoard::Content& board, const ByGpu& gpus,
                                       std::size_t count) {
  if (!board.shape || count < 2) return {};
  topology::Request request;
  request.count = static_cast<unsigned>(count);
  for (const auto& [place, free] : gpus) {
    const auto gpu = static_cast<unsigned>(place);
    if (free.taken) request.include.insert(gpu);
    if (free.taken || !free.numbers.empty()) request.free.insert(gpu);
  }
  const auto best = topology::best_set(*board.shape, request);
  std::vector<std::size_t> places;
  if (best)
    for (const auto& [place, free] : gpus)
      if (best->contains(static_cast<unsigned>(place)) && !free.taken) places.push_back(place);
  return places;
}

// GPUs that still have a slot, those without one of ours first, then by the strategy.
std::vector<std::size_t> in_order(const ByGpu& gpus, SlotStrategy strategy) {
  std::vector<std::size_t> places;
  for (const auto& [place, free] : gpus)
    if (!free.numbers.empty()) places.push_back(place);
  std::ranges::stable_sort(places, {}, [&](std::size_t place) {
    const FreeSlots& free = gpus.at(place);
    const auto left = static_cast<std::ptrdiff_t>(free.numbers.size());
    return std::pair(free.taken, strategy == SlotStrategy::kBinpack ? left : -left);
  });
  return places;
}

}  // namespace

std::vector<std::string> preferred_slots(const DeviceBoard::Content& board,
                                         const SlotQuestion& question, SlotStrategy strategy) {
  std::vector<std::string> chosen = question.must;
  ByGpu gpus = free_slots(board, question);
  const auto take = [&](std::size_t place) {
    FreeSlots& free = gpus[place];
    chosen.push_back(slot_id({board.gpus[place].uuid, free.numbers.front()}));
    free.numbers.erase(free.numbers.begin());
    free.taken = true;
  };
  for (const std::size_t place : best_together(board, gpus, question.count)) {
    if (chosen.size() >= question.count) break;
    take(place);
  }
  while (chosen.size() < question.count) {
    const auto order = in_order(gpus, strategy);
    if (order.empty()) break;
    take(order.front());
  }
  return chosen;
}

}  // namespace aliquot::node
