// Figures of the simulated driver with the modelled launch times set to 0: what a launch costs its
// caller, launches a second through the server, the server's idle load, an allocation pair, what
// eight GPUs full of untouched memory take of the host. Starts a machine of its own. Prints one
// JSON object.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "driver_abi/cuda_functions.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace {

using namespace aliquot::simdriver;

void* handle = nullptr;

template <typename Function>
Function find(const char* symbol) {
  return reinterpret_cast<Function>(dlsym(handle, symbol));
}
#define CU(symbol) find<aliquot::driver_abi::fn::symbol>(#symbol)

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Processor seconds of a process.
double cpu_s(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  double ticks = 0;
  for (int i = 1; i <= 15 && stat >> word; ++i) {
    if (i == 14 || i == 15) ticks += std::stod(word);
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

MachineSpec without_delays(MachineSpec spec) {
  spec = with_free_calls(std::move(spec));
  for (GpuModel& model : spec.models) model.timing.start_ns = 0;
  return spec;
}

struct Program {
  CUfunction kernel = nullptr;
  std::uint64_t ns = 100;
  bool begin() {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    return CU(cuInit)(0) == 0 && CU(cuDevicePrimaryCtxRetain)(&context, 0) == 0 &&
           CU(cuCtxSetCurrent)(context) == 0 &&
           CU(cuModuleLoadData)(&module,
                                ".version 7.0\n.target sm_50\n"
                                ".visible .entry aliquot_spin(.param .u64 n) { ret; }\n") == 0 &&
           CU(cuModuleGetFunction)(&kernel, module, "aliquot_spin") == 0;
  }
  void launch(int count) {
    static const auto launch_kernel = CU(cuLaunchKernel);
    void* arguments[] = {&ns};
    for (int i = 0; i < count; ++i) {
      launch_kernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
    }
  }
};

// A burst that fits into the ring: what the caller alone pays.
double launch_ns(Program& program) {
  constexpr int kBurst = 1500;
  std::vector<double> bursts;
  for (int i = 0; i < 50; ++i) {
    const double start = now_s();
    program.launch(kBurst);
    bursts.push_back((now_s() - start) * 1e9 / kBurst);
    CU(cuCtxSynchronize)();
  }
  return middle(bursts);
}

// The clock is read once before: what a launch costs is asked, not what the first reading of the
// clock does (its own code and data are as cold as the driver's after a sleep).
double after_sleep_ns(Program& program) {
  std::vector<double> singles;
  for (int i = 0; i < 300; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    now_s();
    const double start = now_s();
    program.launch(1);
    singles.push_back((now_s() - start) * 1e9);
  }
  return middle(singles);
}

double launches_per_s(Program& program) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    constexpr int kCount = 500'000;
    const double start = now_s();
    program.launch(kCount);
    CU(cuCtxSynchronize)();
    best = std::max(best, kCount / (now_s() - start));
  }
  return best;
}

double pair_ns() {
  CUdeviceptr kept = 0;
  CU(cuMemAlloc_v2)(&kept, 512);
  std::vector<double> pairs;
  for (int i = 0; i < 2000; ++i) {
    CUdeviceptr address = 0;
    const double start = now_s();
    CU(cuMemAlloc_v2)(&address, 4096);
    CU(cuMemFree_v2)(address);
    pairs.push_back((now_s() - start) * 1e9);
  }
  return middle(pairs);
}

// Resident memory of a process, and what its memory files have been given.
double resident_mib(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/status");
  double kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) kib = std::stod(line.substr(6));
  }
  double blocks = 0;
  std::error_code error;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/" + pid + "/fd", error)) {
    struct stat about{};
    const bool memory = std::filesystem::read_symlink(fd, error).string().starts_with("/memfd:");
    if (memory && stat(fd.path().c_str(), &about) == 0)
      blocks += static_cast<double>(about.st_blocks);
  }
  return kib / 1024 + blocks * 512 / (1 << 20);
}

// Nearly all memory of the eight GPUs, untouched: what the host gives for it, in both processes.
double untouched_mib(pid_t server) {
  const auto used = [&] { return resident_mib("self") + resident_mib(std::to_string(server)); };
  const double before = used();
  for (int gpu = 0; gpu < 8; ++gpu) {
    CUcontext context = nullptr;
    std::size_t free = 0;
    std::size_t total = 0;
    CUdeviceptr all = 0;
    if (CU(cuDevicePrimaryCtxRetain)(&context, gpu) != 0 || CU(cuCtxSetCurrent)(context) != 0 ||
        CU(cuMemGetInfo_v2)(&free, &total) != 0 ||
        CU(cuMemAlloc_v2)(&all, free - (64 << 20)) != 0) {
      return -1;
    }
  }
  return used() - before;
}

}  // namespace

int main() {
  char state[] = "/tmp/aliquot-bench-XXXXXX";
  if (mkdtemp(state) == nullptr) {
    std::perror("a state directory in /tmp");
    return 1;
  }
  setenv("ALIQUOT_STATE_DIR", state, 1);
  const auto simulator = simulator_directory();
  if (!simulator) return 1;
  auto spec = make_machine({"a100x8", "bench", ""}, *simulator);
  if (!spec) return 1;
  const auto machine = start_machine(without_delays(*spec), *simulator);
  if (!machine) {
    std::fprintf(stderr, "%s\n", machine.error().message.c_str());
    return 1;
  }
  handle = dlopen((machine->library_directory() / "libcuda.so.1").c_str(), RTLD_NOW);
  Program program;
  int status = 1;
  if (handle != nullptr && program.begin()) {
    const double in_loop = launch_ns(program);
    const double rested = after_sleep_ns(program);
    const double rate = launches_per_s(program);
    const double pair = pair_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    const double before = cpu_s(machine->pid);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    const double idle = (cpu_s(machine->pid) - before) / 3 * 100;
    const double untouched = untouched_mib(machine->pid);
    std::printf(
        "{\"launch_ns\": %.0f, \"launch_after_sleep_ns\": %.0f, \"launches_per_s\": %.0f, "
        "\"small_pair_ns\": %.0f, \"idle_percent\": %.2f, \"untouched_mib\": %.1f}\n",
        in_loop, rested, rate, pair, idle, untouched);
    status = untouched < 0 ? 1 : 0;
  }
  if (!stop_machine("bench")) status = 1;
  std::filesystem::remove_all(state);
  return status;
}
