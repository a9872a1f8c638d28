#include "simdriver/cuda/library.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simdriver/cuda/call_cost.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

// Real memory is asked for in steps of this size, so that small writes need no question each.
constexpr std::int64_t kCommitStep = 32 << 20;
// A block of a kernel whose time the machine was not told is assumed to run for this long.
constexpr std::uint64_t kUntoldBlockNs = 2'000;

// Asks the server when what it granted is used up.
class CommitCredit {
 public:
  bool operator()(std::int64_t bytes) {
    if (bytes <= credit_) {
      credit_ -= bytes;
      if (credit_ >= 2 * kCommitStep) {
        ask(kCommitStep - credit_);
        credit_ = kCommitStep;
      }
      return true;
    }
    const std::int64_t step = std::max(bytes - credit_, kCommitStep);
    std::int64_t got = step;
    if (!ask(step)) {
      got = bytes - credit_;
      if (!ask(got)) return false;
    }
    credit_ += got - bytes;
    return true;
  }

 private:
  static bool ask(std::int64_t bytes) {
    if (library().ask(Op::kCommit, CommitRequest{bytes}) == CUDA_SUCCESS) return true;
    say(Say::kAlways, "the host's memory for simulated contents is used up");
    return false;
  }
  std::int64_t credit_ = 0;
};

}  // namespace

[[gnu::hot]] Library& library() {
  static Library* const instance = [] {
    auto* made = new Library;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    pthread_atfork(nullptr, nullptr, [] { library().abandon_after_fork(); });
    return made;
  }();
  return *instance;
}

std::vector<Context*>& context_stack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

[[gnu::hot]] bool& per_thread_streams() {
  static thread_local bool on = false;
  return on;
}

void say(Say when, const char* format, ...) {
  static const bool verbose = std::getenv("ALIQUOT_SIM_LOG") != nullptr;
  if (when == Say::kDebug && !verbose) return;
  char line[512];
  va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  if (length > 0) std::fprintf(stderr, "simulated libcuda: %s\n", line);
}

[[gnu::hot]] CUresult current_context(Context*& context) {
  const std::vector<Context*>& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  context = library().contexts.find(stack.back());
  if (context == nullptr) {
    return stack.back() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  return static_cast<CUresult>(context->pages->server->lost.load(std::memory_order_relaxed));
}

CUresult Library::ask_bytes(Op op, std::span<const std::byte> payload, std::span<const int> fds,
                            Answer* answer) {
  if (!client_) return CUDA_ERROR_SYSTEM_NOT_READY;
  std::optional<Answer> got = client_->ask(op, payload, fds);
  if (!got) {
    say(Say::kAlways, "the simulated machine is gone");
    client_.reset();
    return CUDA_ERROR_SYSTEM_NOT_READY;
  }
  const CUresult result = got->result;
  owe(got->cost_ns);
  if (answer != nullptr) *answer = std::move(*got);
  return result;
}

CUresult Library::ask(Op op, Answer* answer) { return ask_bytes(op, {}, {}, answer); }

void Library::ring_bell() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(doorbell_.get(), &one, sizeof(one));
}

CUresult Library::connect() {
  const auto socket = find_server_socket(reinterpret_cast<const void*>(&library));
  if (socket) client_ = Client::connect(*socket);
  if (!client_) {
    say(Say::kAlways,
        "no simulated machine answers; start one with `aliquot sim up`, or name one of several "
        "with ALIQUOT_SIM");
    return CUDA_ERROR_NO_DEVICE;
  }
  Answer answer;
  if (ask(Op::kHello, HelloRequest{kChannelVersion}, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  }
  const auto hello = answer.as<HelloReply>();
  if (!hello || answer.fds.size() != 3) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  cuda_version_ = hello->cuda_version;
  time_scale_micro_ = std::max(hello->time_scale_micro, 1u);
  timed_kernels_ = hello->timed_kernels;
  memory_ = Memory::make(std::move(answer.fds[0]), CommitCredit());
  if (!memory_) return CUDA_ERROR_OUT_OF_MEMORY;
  doorbell_ = std::move(answer.fds[1]);
  void* page = mmap(nullptr, sizeof(MachinePage), PROT_READ, MAP_SHARED, answer.fds[2].get(), 0);
  if (page == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  machine_page_ = static_cast<const MachinePage*>(page);
  device_count_ = hello->device_count;
  return CUDA_SUCCESS;
}

CUresult Library::describe(std::uint32_t number, DeviceInfo& info) {
  Answer answer;
  if (const CUresult result = ask(Op::kDeviceInfo, DeviceRequest{number}, &answer)) return result;
  const auto got = answer.as<DeviceInfo>();
  if (!got) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  info = *got;
  return CUDA_SUCCESS;
}

CUresult Library::time_of_kernel(std::string_view name, std::uint64_t& block_ns) {
  block_ns = kUntoldBlockNs;
  if (timed_kernels_ == 0 || name.size() > kMaxMessageBytes - sizeof(RequestHeader)) {
    return CUDA_SUCCESS;
  }
  Answer answer;
  if (const CUresult result =
          ask_bytes(Op::kKernelTime, std::as_bytes(std::span(name)), {}, &answer)) {
    return result;
  }
  const auto told = answer.as<KernelTime>();
  if (!told) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  if (told->block_ns != 0) block_ns = told->block_ns;
  return CUDA_SUCCESS;
}

// The compute instances in a GPU that is cut by MIG.
CUresult Library::list_instances(unsigned gpu, std::vector<VisibleInstance>& instances) {
  Answer answer;
  if (const CUresult result =
          ask(static_cast<Op>(TelemetryOp::kMig), TelemetryRequest{gpu}, &answer)) {
    return result;
  }
  for (std::size_t at = sizeof(MigReply); at + sizeof(MigPart) <= answer.payload.size();
       at += sizeof(MigPart)) {
    MigPart part;
    std::memcpy(&part, answer.payload.data() + at, sizeof(part));
    if (part.device == kNoDevice) continue;
    DeviceInfo info;
    if (const CUresult result = describe(part.device, info)) return result;
    instances.push_back({part.device, gpu, part.gpu_instance, part.compute_instance, info.uuid});
  }
  return CUDA_SUCCESS;
}

CUresult Library::list_devices() {
  std::vector<DeviceInfo> gpus(device_count_);
  std::vector<VisibleInstance> instances;
  for (std::uint32_t i = 0; i < device_count_; ++i) {
    if (const CUresult result = describe(i, gpus[i])) return result;
    if (gpus[i].mig == 0) continue;
    if (const CUresult result = list_instances(i, instances)) return result;
  }
  const DeviceChoice choice{std::getenv("CUDA_VISIBLE_DEVICES"), std::getenv("CUDA_DEVICE_ORDER")};
  for (const unsigned number : visible_devices(gpus, instances, choice)) {
    auto view = std::make_unique<DeviceView>();
    view->ordinal = static_cast<int>(devices_.size());
    view->server = number;
    if (const CUresult result = describe(number, view->info)) return result;
    devices_.push_back(std::move(view));
  }
  return devices_.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult Library::connected() {
  if (!connect_result_) connect_result_ = connect();
  return *connect_result_;
}

// Asking for the version or an address is not initialising: CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER count as they are when cuInit is called.
CUresult Library::initialise() {
  if (!init_result_) {
    init_result_ = connected();
    if (*init_result_ == CUDA_SUCCESS) init_result_ = list_devices();
    if (*init_result_ == CUDA_SUCCESS) initialised_.store(true, std::memory_order_release);
  }
  return *init_result_;
}

int Library::cuda_version() {
  (void)connected();  // without a machine: the newest version
  return cuda_version_;
}

std::int64_t Library::host_span(std::int64_t machine_ns) const {
  return static_cast<std::int64_t>(static_cast<double>(machine_ns) * 1e6 / time_scale_micro_);
}

DeviceView* Library::device(int ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()) return nullptr;
  return devices_[static_cast<std::size_t>(ordinal)].get();
}

}  // namespace aliquot::simdriver
