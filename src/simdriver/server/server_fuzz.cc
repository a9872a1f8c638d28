// Whatever a client asks, and whatever it writes into its ring, the server lives and its books
// balance once the client is gone. Input: pieces of {kind, length, bytes}: a request's op and
// payload, words for the client's page, or time that passes.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "simdriver/server/handlers.h"

namespace aliquot::simdriver {
namespace {

MachineSpec small_machine() {
  MachineSpec spec;
  GpuModel model;
  model.sms = 4;
  model.memory.driver_total_bytes = 1u << 30;
  model.memory.context_bytes = 100u << 20;
  model.memory.bus_bits = 1024;
  model.clocks.memory_max_mhz = 1000;
  model.pcie.host_gbytes_per_s = 10;
  model.timing.time_slice_ns = 2'000'000;
  model.timing.utilisation_period_ns = 1'000'000;
  spec.models = {model};
  spec.gpus.resize(2);
  spec.nvlinks.assign(2, {0, 0});
  return spec;
}

struct Input {
  std::span<const std::uint8_t> left;

  std::span<const std::uint8_t> take(std::size_t bytes) {
    const auto taken = left.first(std::min(bytes, left.size()));
    left = left.subspan(taken.size());
    return taken;
  }
  std::uint16_t number() {
    std::uint16_t value = 0;
    const auto bytes = take(sizeof(value));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
};

void ask(MachineState& machine, Session& session, Op op, std::span<const std::uint8_t> payload) {
  if (op == Op::kShutdown) return;
  std::vector<UniqueFd> fds;
  Call call{machine, session, op, std::as_bytes(payload), fds, {}, {}, 0};
  machine.catch_up();
  handle(call);
}

void scribble(Session& session, MachineState& machine, std::uint16_t place,
              std::span<const std::uint8_t> bytes) {
  if (session.contexts.empty()) return;
  ContextEntry& context = *machine.contexts().at(session.contexts.back());
  auto* page = reinterpret_cast<std::uint8_t*>(&*context.client);
  const std::size_t at = std::size_t{place} * 8 % (sizeof(ClientPage) - bytes.size());
  std::memcpy(page + at, bytes.data(), bytes.size());
}

}  // namespace
}  // namespace aliquot::simdriver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)
  aliquot::SteppedClock clock;
  auto machine = MachineState::make(small_machine(), clock, 1u << 20);
  if (!machine) return 0;
  Session& session = (*machine)->add_session(std::make_unique<Session>());
  session.greeted = true;
  session.uid = geteuid();
  if (!(*machine)->open_context(session, 0)) std::abort();
  Input input{{data, size}};
  while (!input.left.empty()) {
    const std::uint16_t what = input.number();
    const auto bytes = input.take(input.number() % 128);
    if (what % 4 == 0) {
      scribble(session, **machine, what / 4, bytes);
    } else if (what % 4 == 1) {
      clock.advance(std::int64_t{what} * 1000);
      (*machine)->catch_up();
      (*machine)->publish();
      (void)(*machine)->next_look();
    } else {
      ask(**machine, session, static_cast<Op>(0x100 + what / 4 % 0x600), bytes);
    }
  }
  (*machine)->end_session(session.id);
  (*machine)->end_closed_exports();
  for (auto& gpu : (*machine)->devices()) {
    if (gpu->books.used_bytes() != 0) std::abort();
  }
  return 0;
}
