// aliquot-probe: asks NVML about one GPU on behalf of aliquotd, which never calls NVML itself: a
// call that hangs then costs one GPU its freshness and nothing else. A program of its own, small.
//
//   gpu LIBNVIDIA-ML UUID BUS-ID      answers each question on stdin with a line (probe_line.h)
//   driver STATE-DIRECTORY [SIM]      says which driver is met, as JSON
//   inventory STATE-DIRECTORY DRIVER  prints the machine's inventory
//
// Ends when stdin does: it never outlives the daemon for long.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "inventory/document.h"
#include "inventory/driver_choice.h"
#include "node/probe_line.h"

namespace aliquot::node {
namespace {

constexpr std::chrono::seconds kXidWait(1);
constexpr std::chrono::milliseconds kUsePause(250);  // as often as leases are audited
constexpr std::chrono::seconds kXidPause(30);        // where the driver has no events

int fail(const std::string& message) {
  std::fprintf(stderr, "aliquot-probe: %s\n", message.c_str());
  return 1;
}

// Lines come from several threads.
void say(const ProbeLine& line) {
  static std::mutex mutex;
  const std::string text = probe_line_text(line) + '\n';
  const std::lock_guard lock(mutex);
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(0);  // nobody listens any more
}

[[noreturn]] void watch_xids(inventory::Nvml& nvml, unsigned gpu) {
  for (;;) {
    const auto xid = nvml.wait_for_xid(gpu, kXidWait);
    if (!xid) {
      std::this_thread::sleep_for(kXidPause);
    } else if (*xid) {
      ProbeLine line;
      line.xid = *xid;
      say(line);
    }
  }
}

// What a lease's work is held to (broker::Compute::judge): unasked, so that it waits for no answer
// and nobody for it.
[[noreturn]] void watch_use(inventory::Nvml& nvml, unsigned gpu) {
  for (std::uint64_t told_us = 0;; std::this_thread::sleep_for(kUsePause)) {
    auto use = nvml.use(gpu, told_us);
    if (!use || use->empty()) continue;
    ProbeLine line;
    line.use = *std::move(use);
    for (const inventory::NvmlUse& sample : line.use) told_us = std::max(told_us, sample.at_us);
    say(line);
  }
}

ProbeLine answer(inventory::Nvml& nvml, unsigned gpu, char question) {
  ProbeLine line;
  if (question == kAskHeld) {
    const auto held = nvml.held(gpu);
    if (!held) return line.error = held.error().message, line;
    line.held = *held;
    return line;
  }
  const auto state = nvml.state(gpu);
  const auto health = nvml.health(gpu);
  if (!state) line.error = state.error().message;
  if (!state && !health) return line;
  line.reading.emplace();
  if (state) line.reading->state = *state;
  if (health) line.reading->health = *health;
  return line;
}

// Found by its place, so that no other GPU has to answer for it.
int probe_gpu(const std::string& library, const std::string& uuid, const std::string& bus_id) {
  auto nvml = inventory::open_nvml(library);
  if (!nvml) return fail(nvml.error().message);
  const auto at = (*nvml)->index_at(bus_id);
  if (!at) return fail(at.error().message);
  const unsigned gpu = *at;
  const auto found = (*nvml)->gpu(gpu);
  if (!found) return fail(found.error().message);
  if (found->uuid != uuid) return fail("the GPU at " + bus_id + " is not " + uuid);
  std::thread([&nvml = **nvml, gpu] { watch_xids(nvml, gpu); }).detach();  // end with us
  std::thread([&nvml = **nvml, gpu] { watch_use(nvml, gpu); }).detach();
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) == 1) say(answer(**nvml, gpu, byte));
  ::_exit(0);  // the other threads may be inside the driver
}

int print_driver(const std::string& state_directory, const std::string& sim) {
  const auto driver =
      inventory::choose_driver({state_directory, sim, "", &inventory::find_real_driver});
  if (!driver) return fail(driver.error().message);
  std::fputs(inventory::driver_text(*driver).c_str(), stdout);
  return 0;
}

int print_inventory(const std::string& state_directory, const std::string& name) {
  const auto driver =
      inventory::driver_called(name, {state_directory, "", "", &inventory::find_real_driver});
  if (!driver) return fail(driver.error().message);
  auto nvml = inventory::open_nvml(driver->libnvidia_ml);
  if (!nvml) return fail(nvml.error().message);
  const auto found =
      inventory::collect(**nvml, inventory::roots_of(*driver), *driver, std::time(nullptr));
  if (!found) return fail(found.error().message);
  std::puts(inventory::to_json(*found).dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace aliquot::node

// NOLINTNEXTLINE(bugprone-exception-escape): without memory or threads it ends, and is started anew
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 5 && words[1] == "gpu")
    return aliquot::node::probe_gpu(words[2], words[3], words[4]);
  if (words.size() == 4 && words[1] == "inventory")
    return aliquot::node::print_inventory(words[2], words[3]);
  if (words.size() >= 3 && words.size() <= 4 && words[1] == "driver")
    return aliquot::node::print_driver(words[2], words.size() == 4 ? words[3] : "");
  std::fputs(
      "usage: aliquot-probe gpu LIBNVIDIA-ML UUID BUS-ID | driver STATE-DIRECTORY [SIM] |"
      " inventory STATE-DIRECTORY DRIVER\n",
      stderr);
  return 2;
}
