// For tests: a simulated machine in a state directory of its own, and the driver's functions as a
// program finds them. One per test binary.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "driver_abi/cuda_functions.h"
#include "simdriver/channel/client.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver::test {

// Starts the machine before the first test and ends it after the last. Its calls cost nothing;
// `change` may alter what the preset says.
class MachineEnvironment : public testing::Environment {
 public:
  explicit MachineEnvironment(std::string node, std::string cuda = "",
                              std::function<void(MachineSpec&)> change = nullptr)
      : node_(std::move(node)), cuda_(std::move(cuda)), change_(std::move(change)) {}

  void SetUp() override {
    char pattern[] = "/tmp/aliquot-sim-XXXXXX";
    state_ = mkdtemp(pattern);
    setenv("ALIQUOT_STATE_DIR", state_.c_str(), 1);
    unsetenv("ALIQUOT_SIM");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    const auto simulator = simulator_directory();
    ASSERT_TRUE(simulator) << simulator.error().message;
    const auto spec = make_machine({node_, "test", cuda_}, *simulator);
    ASSERT_TRUE(spec) << spec.error().message;
    MachineSpec changed = with_free_calls(*spec);
    if (change_) change_(changed);
    const auto machine = start_machine(changed, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
  }
  void TearDown() override {
    const Status stopped = stop_machine("test");
    EXPECT_TRUE(stopped) << stopped.error().message;
    std::filesystem::remove_all(state_);
  }

 private:
  std::string node_;
  std::string cuda_;
  std::function<void(MachineSpec&)> change_;
  std::filesystem::path state_;
};

// Of the whole test binary; gtest ends it.
inline const testing::Environment* machine_for_tests(
    std::string node, std::string cuda = "", std::function<void(MachineSpec&)> change = nullptr) {
  auto machine =
      std::make_unique<MachineEnvironment>(std::move(node), std::move(cuda), std::move(change));
  return testing::AddGlobalTestEnvironment(machine.release());
}

inline void* driver_handle() {
  static void* const handle =
      dlopen((machine_directory("test") / "lib" / "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle;
}

template <typename Function>
Function find(const char* symbol) {
  void* handle = driver_handle();
  void* function = handle == nullptr ? nullptr : dlsym(handle, symbol);
  if (function == nullptr) ADD_FAILURE() << symbol << " is not there: " << dlerror();
  return reinterpret_cast<Function>(function);
}
// CU(cuMemAlloc_v2)(&address, bytes)
#define CU(symbol) (::aliquot::simdriver::test::find<::aliquot::driver_abi::fn::symbol>(#symbol))

// A descriptor as the calls that import one take it.
inline void* as_os_handle(int fd) { return reinterpret_cast<void*>(std::intptr_t{fd}); }

// Free bytes of a GPU as the server's books say, seen without being a CUDA program.
inline std::uint64_t free_bytes(std::uint32_t gpu = 0) {
  auto client = Client::connect(machine_directory("test") / "socket");
  if (!client) return 0;
  const auto answer = client->ask(Op::kMemoryInfo, DeviceRequest{gpu});
  const auto info = answer ? answer->as<MemoryInfo>() : std::nullopt;
  return info ? info->free_bytes : 0;
}

}  // namespace aliquot::simdriver::test
