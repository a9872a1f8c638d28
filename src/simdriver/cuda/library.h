// The simulated libcuda's one process-wide state, and the ways to it. A body (bodies.h) takes the
// lock first thing and holds it except while it waits or runs the program's own functions.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "simdriver/channel/client.h"
#include "simdriver/cuda/memory.h"
#include "simdriver/cuda/objects.h"
#include "simdriver/cuda/visible_devices.h"

namespace aliquot::simdriver {

class Library {
 public:
  std::mutex mutex;
  std::condition_variable effects_changed;  // for callback threads
  std::vector<std::byte> launch_arguments;  // of the last launch: room for the next one's

  // What cuInit does; later calls repeat the first answer.
  CUresult initialise();
  bool initialised() const { return initialised_.load(std::memory_order_acquire); }
  // CUDA's number of the version that the machine pretends; 13000 before there is a machine.
  int cuda_version();

  DeviceView* device(int ordinal);
  std::vector<std::unique_ptr<DeviceView>>& devices() { return devices_; }
  // How long the host waits for so much of the machine's time.
  std::int64_t host_span(std::int64_t machine_ns) const;
  // How long a block of the kernel runs, as the machine was told.
  CUresult time_of_kernel(std::string_view name, std::uint64_t& block_ns);
  const MachinePage* machine_page() const { return machine_page_; }

  // One request. A dead server is CUDA_ERROR_SYSTEM_NOT_READY from then on.
  CUresult ask(Op op, Answer* answer);
  template <typename T>
  CUresult ask(Op op, const T& payload, Answer* answer = nullptr) {
    return ask_bytes(op, std::as_bytes(std::span(&payload, 1)), {}, answer);
  }
  CUresult ask_bytes(Op op, std::span<const std::byte> payload, std::span<const int> fds,
                     Answer* answer);
  bool server_alive() const { return client_ && client_->alive(); }
  void ring_bell() const;

  Memory& memory() { return *memory_; }
  Registry<Context> contexts;
  Registry<Stream> streams;
  Registry<Event> events;

  // The child of a fork must not use anything of the parent's.
  void abandon_after_fork() { forked_.store(true); }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  std::uint64_t next_id() { return ++last_id_; }

 private:
  CUresult connect();
  CUresult connected();  // connects at the first call
  CUresult list_devices();
  CUresult list_instances(unsigned gpu, std::vector<VisibleInstance>& instances);
  CUresult describe(std::uint32_t number, DeviceInfo& info);

  std::atomic<bool> initialised_ = false;
  std::atomic<bool> forked_ = false;
  std::optional<CUresult> connect_result_;
  std::optional<CUresult> init_result_;
  std::uint32_t device_count_ = 0;
  std::optional<Client> client_;
  UniqueFd doorbell_;
  const MachinePage* machine_page_ = nullptr;
  int cuda_version_ = 13000;
  std::uint32_t time_scale_micro_ = 1'000'000;
  std::uint32_t timed_kernels_ = 0;
  std::unique_ptr<Memory> memory_;
  std::vector<std::unique_ptr<DeviceView>> devices_;
  std::uint64_t last_id_ = 0;
};

// Made at the first call and never destroyed: programs call into the driver from exit handlers.
Library& library();

using Lock = std::unique_lock<std::mutex>;
inline Lock hold() { return Lock(library().mutex); }

// The calling thread's current context; an error where there is none or it is lost.
CUresult current_context(Context*& context);
// The thread's stack of current contexts; entries may be stale.
std::vector<Context*>& context_stack();

// True inside a _ptsz or _ptds entry: the null stream is the thread's own.
bool& per_thread_streams();

// One line on stderr, when ALIQUOT_SIM_LOG is set, or always for `kAlways`.
enum class Say { kDebug, kAlways };
void say(Say when, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace aliquot::simdriver
