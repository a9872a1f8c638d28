// One random program: calls of the driver API that follow from a seed, each checked against the
// reference model, result and numbers. It runs in a process of its own (the driver's state is the
// process's) and may have a second process beside it, with which it shares memory.
//
// What takes time has no fixed result, so nothing is asked of work that may or may not have ended:
// only of streams that were waited for, and of streams that cannot go on because their gate (a wait
// for a value in memory) is closed.
#pragma once

#include <deque>
#include <random>
#include <string>

#include "driver_abi/cuda_functions.h"
#include "reference/model.h"
#include "reference/peer.h"

namespace aliquot::reference {

struct Plan {
  std::uint64_t seed = 0;
  int steps = 60;
  unsigned gpus = 2;
  Bytes total_bytes = 0;  // of each GPU
  Bytes context_bytes = 0;
  int peer = -1;  // socket of the other process; -1: alone
  int peer_process = 0;
};

class Program {
 public:
  explicit Program(const Plan& plan);
  // Ends the process with a message where driver and model differ.
  void run();

 private:
  struct Stream {
    CUstream handle = nullptr;
    unsigned flags = 0;
    int priority = 0;
  };
  struct Event {
    CUevent handle = nullptr;
    bool timed = true;
    int recorded = 0;  // how manieth record of the program; 0: never
  };
  struct Mapping {
    CUdeviceptr address = 0;
    Id physical = -1;
  };
  struct HostFunction {
    std::vector<int>& ran;
    int number = 0;
  };
  using Effect = std::function<void()>;
  // A stream that cannot go on, and one that waits for it.
  struct Gate {
    CUstream gated = nullptr;
    CUstream behind = nullptr;
    CUevent started = nullptr;
    CUevent ended = nullptr;
    CUevent order = nullptr;
    void* word = nullptr;
  };

  // ---- the parts, one file each: what a step may be
  void begin();
  void end();
  void check_books();
  void check_first_gpu();
  // program_seen.cc
  void check_nvml();
  void step_child();
  // program_memory.cc
  void step_linear();
  void step_managed();
  void step_from_pool();
  void step_free();
  void step_wrong_free();
  void step_pool();
  void step_read_pool();
  void step_physical();
  void pass_by_descriptor();
  void map();
  void unmap();
  void step_array();
  void step_mipmap();
  void step_host();
  void step_range();
  void step_context();
  void free_now(Id id);
  // program_work.cc
  void step_fill();
  void step_copy();
  void step_read();
  void step_kernel();
  void step_wrong_range();
  void step_stream();
  void step_event();
  void step_gate();
  void run_behind_gate(const Gate& gate);
  void check_unchanged();
  void check_host_functions();
  CUresult fill_on(CUstream stream, const std::function<void(Effect)>& effect);
  CUresult copy_on(CUstream stream, const std::function<void(Effect)>& effect);
  CUresult kernel_on(CUstream stream, const std::function<void(Effect)>& effect);
  CUresult host_function_on(CUstream stream, const std::function<void(Effect)>& effect);
  CUresult any_work_on(CUstream stream, const std::function<void(Effect)>& effect);
  void compare(Id id);
  // program_graphs.cc
  void step_graph();
  void step_graph_memory();
  void step_broken_capture();
  // program_peer.cc
  void step_peer();
  void peer_opens();
  void peer_closes();
  void peer_uses_pool();

  // ---- tools
  [[noreturn]] void differ(const std::string& what);
  void expect(const std::string& call, CUresult expected, CUresult actual);
  void expect_number(const std::string& what, std::uint64_t expected, std::uint64_t actual);
  std::uint64_t up_to(std::uint64_t most) { return random_() % (most + 1); }
  bool one_in(std::uint64_t n) { return up_to(n - 1) == 0; }
  template <typename List>
  auto& any(List& list) {
    return list[up_to(std::size(list) - 1)];
  }
  Bytes some_bytes();
  // What this process has an address of; the other one's memory is in the model too.
  std::vector<Id> mine(const std::set<Kind>& kinds) const;
  // Device memory that copies may use; -1: none.
  Id some_memory();
  CUdeviceptr address_of(Id id) { return addresses_.at(id); }
  Contents& contents_of(Id id) { return *model_.memory(id).contents; }
  Id current() const { return contexts_[current_].id; }

  struct OpenContext {
    Id id = -1;
    CUcontext handle = nullptr;
    bool primary = true;
  };

  const Plan plan_;
  std::mt19937_64 random_;
  Model model_;
  std::deque<std::string> trace_;
  std::vector<OpenContext> contexts_;
  std::size_t current_ = 0;
  std::map<Id, CUdeviceptr> addresses_;
  std::map<Id, CUmemGenericAllocationHandle> physical_;
  std::set<Id> exportable_;
  std::map<Id, CUarray> arrays_;
  std::map<Id, CUmipmappedArray> mipmaps_;
  std::map<Id, CUmemoryPool> pools_;
  std::vector<Mapping> mappings_;
  std::vector<CUdeviceptr> stale_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  int records_ = 0;
  // Host functions by their numbers: in which order they ran, and in which they should have.
  std::vector<int> ran_, should_run_;
  std::deque<HostFunction> host_functions_;  // which the driver has the addresses of
  CUfunction fill_kernel_ = nullptr;
  CUfunction add_kernel_ = nullptr;
  CUfunction verify_kernel_ = nullptr;
  CUfunction spin_kernel_ = nullptr;
  Peer peer_;
};

}  // namespace aliquot::reference
