#include "reference/program.h"

#include <unistd.h>

#include <cstdio>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {

Program::Program(const Plan& plan)
    : plan_(plan),
      random_(plan.seed),
      model_(std::vector<Bytes>(plan.gpus, plan.total_bytes), plan.context_bytes) {
  peer_.socket = plan.peer;
  peer_.pid = plan.peer_process;
}

void Program::differ(const std::string& what) {
  std::fprintf(stderr, "program %llu: %s; before it:\n",
               static_cast<unsigned long long>(plan_.seed), what.c_str());
  for (const std::string& line : trace_) std::fprintf(stderr, "  %s\n", line.c_str());
  _exit(1);
}

void Program::expect(const std::string& call, CUresult expected, CUresult actual) {
  constexpr std::size_t kRemembered = 40;
  trace_.push_back(call + ": " + std::to_string(actual));
  if (trace_.size() > kRemembered) trace_.pop_front();
  if (expected != actual) {
    differ(call + " gives " + std::to_string(actual) + ", the model " + std::to_string(expected));
  }
}

void Program::expect_number(const std::string& what, std::uint64_t expected, std::uint64_t actual) {
  if (expected == actual) return;
  differ(what + " is " + std::to_string(actual) + ", in the model " + std::to_string(expected));
}

Bytes Program::some_bytes() {
  switch (up_to(9)) {
    case 0:
      return one_in(4) ? 0 : 1;
    case 1:
    case 2:
    case 3:
      return 1 + up_to(8191);
    case 4:
    case 5:
      return 1 + up_to(2u << 20);
    case 6:
      return kGranule * (1 + up_to(8)) - one_in(2);
    case 7:
      return one_in(3) ? plan_.total_bytes * (1 + up_to(1u << 20)) : up_to(plan_.total_bytes);
    default:
      return up_to(plan_.total_bytes / 16);
  }
}

std::vector<Id> Program::mine(const std::set<Kind>& kinds) const {
  std::vector<Id> all = model_.all_of(kinds);
  std::erase_if(all, [&](Id id) { return !addresses_.contains(id); });
  return all;
}

void Program::begin() {
  expect("cuInit", CUDA_SUCCESS, CU(cuInit)(0));
  for (unsigned gpu = 0; gpu < plan_.gpus; ++gpu) {
    OpenContext made;
    const CUresult expected = model_.open_context(gpu, made.id);
    expect("cuDevicePrimaryCtxRetain", expected,
           CU(cuDevicePrimaryCtxRetain)(&made.handle, static_cast<CUdevice>(gpu)));
    contexts_.push_back(made);
    CUmemoryPool pool = nullptr;
    expect("cuDeviceGetDefaultMemPool", CUDA_SUCCESS,
           CU(cuDeviceGetDefaultMemPool)(&pool, static_cast<CUdevice>(gpu)));
    pools_[model_.make_pool(gpu, true)] = pool;
  }
  expect("cuCtxSetCurrent", CUDA_SUCCESS, CU(cuCtxSetCurrent)(contexts_[0].handle));
  CUmodule module = nullptr;
  expect("cuModuleLoadData", CUDA_SUCCESS, CU(cuModuleLoadData)(&module, simdriver::kBuiltinPtx));
  const std::pair<const char*, CUfunction*> kernels[] = {{"aliquot_fill", &fill_kernel_},
                                                         {"aliquot_add", &add_kernel_},
                                                         {"aliquot_verify", &verify_kernel_},
                                                         {"aliquot_spin", &spin_kernel_}};
  for (const auto& [name, kernel] : kernels) {
    expect("cuModuleGetFunction", CUDA_SUCCESS, CU(cuModuleGetFunction)(kernel, module, name));
  }
}

// The numbers that any program sees, after every step.
void Program::check_books() {
  size_t free = 0;
  size_t total = 0;
  expect("cuMemGetInfo", CUDA_SUCCESS, CU(cuMemGetInfo_v2)(&free, &total));
  const unsigned gpu = model_.gpu_of(current());
  expect_number("free memory", model_.free_bytes(gpu), free);
  expect_number("total memory", model_.total_bytes(gpu), total);
}

void Program::check_first_gpu() {
  size_t free = 0;
  expect("cuMemGetInfo", CUDA_SUCCESS, CU(cuMemGetInfo_v2)(&free, nullptr));
  expect_number("free memory of GPU 0", model_.free_bytes(0), free);
}

// Everything goes with its context, physical memory and pools by themselves.
void Program::end() {
  for (const Mapping& mapping : mappings_) {
    const Bytes bytes = model_.memory(mapping.physical).bytes;
    expect("cuMemUnmap", CUDA_SUCCESS, CU(cuMemUnmap)(mapping.address, bytes));
    model_.release(mapping.physical);
  }
  for (const auto& [id, handle] : physical_) {
    expect("cuMemRelease", CUDA_SUCCESS, CU(cuMemRelease)(handle));
    model_.release(id);
  }
  for (const Id id : mine({Kind::kLinear, Kind::kManaged, Kind::kPool})) free_now(id);
  check_books();
  for (std::size_t gpu = 0; gpu < plan_.gpus; ++gpu) {
    expect_number("free memory at the end", model_.free_bytes(static_cast<unsigned>(gpu)),
                  simdriver::test::free_bytes(static_cast<std::uint32_t>(gpu)));
  }
}

void Program::run() {
  using Step = void (Program::*)();
  constexpr Step kSteps[] = {
      &Program::step_linear,    &Program::step_linear,       &Program::step_managed,
      &Program::step_from_pool, &Program::step_from_pool,    &Program::step_free,
      &Program::step_free,      &Program::step_free,         &Program::step_wrong_free,
      &Program::step_pool,      &Program::step_read_pool,    &Program::step_physical,
      &Program::step_physical,  &Program::step_array,        &Program::step_host,
      &Program::step_range,     &Program::step_context,      &Program::step_fill,
      &Program::step_fill,      &Program::step_copy,         &Program::step_read,
      &Program::step_read,      &Program::step_kernel,       &Program::step_wrong_range,
      &Program::step_stream,    &Program::step_event,        &Program::step_gate,
      &Program::step_graph,     &Program::step_graph_memory, &Program::step_broken_capture,
      &Program::step_peer,      &Program::step_mipmap,       &Program::step_child,
  };
  begin();
  for (int i = 0; i < plan_.steps; ++i) {
    (this->*any(kSteps))();
    check_books();
    if (one_in(8)) check_nvml();
  }
  end();
}

}  // namespace aliquot::reference
