// The in-memory twin of Nvml, and what is computed over the interface alone.

#include <algorithm>

#include "inventory/nvml.h"

namespace aliquot::inventory {
namespace {

Error no_such_gpu(unsigned gpu) {
  return {Errc::kNotFound, "GPU " + std::to_string(gpu) + ": not on this machine"};
}

struct Joint {
  unsigned links = 0;
  unsigned generation = 0;
  bool by_switch = false;
};

// NVLinks of `from` that end at `bus_id`; else what both have to a switch.
Joint joint_of(const std::vector<NvmlNvlink>& from, const std::vector<NvmlNvlink>& to,
               const std::string& bus_id) {
  Joint direct;
  unsigned up_from = 0;
  unsigned up_to = 0;
  for (const NvmlNvlink& link : from) {
    if (!link.active) continue;
    direct.generation = std::max(direct.generation, link.generation);
    if (link.remote_is_switch) up_from += 1;
    if (link.remote_bus_id == bus_id) direct.links += 1;
  }
  if (direct.links > 0) return direct;
  for (const NvmlNvlink& link : to)
    if (link.active && link.remote_is_switch) up_to += 1;
  return {std::min(up_from, up_to), direct.generation, true};
}

}  // namespace

Result<std::vector<NvmlGpu>> Nvml::gpus() {
  const Result<unsigned> number = count();
  if (!number) return number.error();
  std::vector<NvmlGpu> all;
  for (unsigned i = 0; i < *number; ++i) {
    auto one = gpu(i);
    if (!one) return one.error();
    all.push_back(*std::move(one));
  }
  return all;
}

Result<model::NodeTopology> topology_from(Nvml& nvml) {
  const auto gpus = nvml.gpus();
  if (!gpus) return gpus.error();
  std::vector<model::Device> devices;
  std::vector<std::vector<NvmlNvlink>> links;
  for (unsigned i = 0; i < gpus->size(); ++i) {
    const NvmlGpu& gpu = (*gpus)[i];
    devices.push_back({"GPU" + std::to_string(i), gpu.uuid, gpu.cpus, gpu.numa});
    auto all = nvml.nvlinks(i);
    if (!all) return all.error();
    links.push_back(std::move(*all));
  }
  model::NodeTopology node(std::move(devices), {});
  for (unsigned a = 0; a < gpus->size(); ++a)
    for (unsigned b = a + 1; b < gpus->size(); ++b) {
      const Joint joint = joint_of(links[a], links[b], (*gpus)[b].bus_id);
      if (joint.links > 0) {
        const auto kind = joint.by_switch ? model::LinkKind::kNvswitch : model::LinkKind::kNvlink;
        node.set_link(a, b, model::nvlink(joint.links, joint.generation, kind));
        continue;
      }
      const auto path = nvml.path(a, b);
      if (!path) return path.error();
      node.set_link(a, b,
                    model::path_link(*path, std::min((*gpus)[a].pcie_max_generation,
                                                     (*gpus)[b].pcie_max_generation)));
    }
  return node;
}

Result<NvmlSystem> FakeNvml::system() {
  if (fault) return *fault;
  return system_answer;
}

Result<unsigned> FakeNvml::count() {
  if (fault) return *fault;
  return static_cast<unsigned>(gpu_answers.size());
}

Result<NvmlGpu> FakeNvml::gpu(unsigned gpu) {
  if (fault) return *fault;
  if (gpu >= gpu_answers.size()) return no_such_gpu(gpu);
  return gpu_answers[gpu];
}

Result<unsigned> FakeNvml::index_at(const std::string& bus_id) {
  if (fault) return *fault;
  const auto at = std::ranges::find(gpu_answers, bus_id, &NvmlGpu::bus_id);
  if (at == gpu_answers.end())
    return Error{Errc::kNotFound, "GPU at " + bus_id + ": not on this machine"};
  return static_cast<unsigned>(at - gpu_answers.begin());
}

Result<NvmlState> FakeNvml::state(unsigned gpu) {
  if (fault) return *fault;
  if (gpu >= state_answers.size()) return no_such_gpu(gpu);
  return state_answers[gpu];
}

Result<NvmlHeld> FakeNvml::held(unsigned gpu) {
  const auto now = state(gpu);
  if (!now) return now.error();
  return NvmlHeld{now->memory, now->processes};
}

Result<HealthReading> FakeNvml::health(unsigned gpu) {
  if (fault) return *fault;
  if (gpu >= gpu_answers.size()) return no_such_gpu(gpu);
  if (gpu >= health_answers.size()) return HealthReading();
  return health_answers[gpu];
}

Result<std::vector<NvmlUse>> FakeNvml::use(unsigned gpu, std::uint64_t after_us) {
  if (fault) return *fault;
  if (gpu >= gpu_answers.size()) return no_such_gpu(gpu);
  std::vector<NvmlUse> use;
  if (gpu < use_answers.size())
    for (const NvmlUse& sample : use_answers[gpu])
      if (sample.at_us > after_us) use.push_back(sample);
  return use;
}

Result<model::LinkKind> FakeNvml::path(unsigned gpu, unsigned other) {
  if (fault) return *fault;
  if (gpu >= path_answers.size() || other >= path_answers[gpu].size())
    return no_such_gpu(std::max(gpu, other));
  return path_answers[gpu][other];
}

Result<std::vector<NvmlNvlink>> FakeNvml::nvlinks(unsigned gpu) {
  if (fault) return *fault;
  if (gpu >= gpu_answers.size()) return no_such_gpu(gpu);
  if (gpu >= nvlink_answers.size()) return std::vector<NvmlNvlink>();
  return nvlink_answers[gpu];
}

Result<NvmlMig> FakeNvml::mig(unsigned gpu) {
  if (fault) return *fault;
  if (gpu >= gpu_answers.size()) return no_such_gpu(gpu);
  return gpu < mig_answers.size() ? mig_answers[gpu] : NvmlMig();
}

Result<std::optional<unsigned>> FakeNvml::wait_for_xid(unsigned, std::chrono::milliseconds) {
  if (fault) return *fault;
  if (xids.empty()) return std::optional<unsigned>();
  const unsigned first = xids.front();
  xids.erase(xids.begin());
  return std::optional(first);
}

}  // namespace aliquot::inventory
