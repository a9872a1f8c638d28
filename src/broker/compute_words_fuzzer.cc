// Whatever stands in a ledger's gate words, whenever: the broker's half neither breaks nor stops,
// and an honest tenant that waits gets a window.
#include <cstdlib>
#include <cstring>

#include "broker/compute_fixture.h"

using namespace aliquot;          // NOLINT
using namespace aliquot::broker;  // NOLINT

namespace {

// Four bytes each: what, where, how much.
struct Action {
  std::uint8_t what, where;
  std::uint16_t value;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  PlayedLease hostile, honest;
  ComputeGpu gpu({}, 1.0);
  Nanoseconds now = kSecond;
  const std::size_t scribbler = gpu.add(now, hostile.grant, hostile.ledger(), 0);
  const std::size_t waiter = gpu.add(now, honest.grant, honest.ledger(), 0);
  for (unsigned slot = 0; slot < 4; ++slot) gpu.take_slot(now, scribbler, slot);
  gpu.take_slot(now, waiter, 0);
  for (; size >= sizeof(Action); data += sizeof(Action), size -= sizeof(Action)) {
    Action action;
    std::memcpy(&action, data, sizeof action);
    wire::Cell& cell = hostile.cell(action.where % 4);
    std::atomic<std::uint64_t>& word = cell.gate[action.where / 4 % gate::kReportWords];
    switch (action.what % 5) {
      case 0:
        word = static_cast<std::uint64_t>(action.value) << action.where % 49;
        break;
      case 1:
        word = ~std::uint64_t{0} << action.value % 64;
        break;
      case 2:
        word = static_cast<std::uint64_t>(now) + action.value;
        break;
      case 3:
        cell.demand = action.value;
        hostile.ring();
        break;
      case 4:
        now += action.value * 100;
        break;
    }
    if (gpu.step(now) <= now) std::abort();
  }
  // Now it waits: with the scribbler's words as they are, its turn comes.
  honest.say({.waiting = 1});
  for (const Nanoseconds end = now + 3 * kSecond; !honest.window().open; now = gpu.step(now))
    if (now > end) std::abort();
  return 0;
}
