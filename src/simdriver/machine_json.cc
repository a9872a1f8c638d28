#include "simdriver/machine_json.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <span>

#include "format/described.h"
#include "format/fields.h"
#include "simdriver/machine_text.h"
#include "simdriver/machine_validity.h"

namespace aliquot::simdriver {

using format::Fields;
using format::Json;

// One list of fields serves reading and writing (format/described.h).
template <typename V>
void describe(V& v, MemorySizes& m) {
  v("nvml_total_bytes", m.nvml_total_bytes);
  v("driver_total_bytes", m.driver_total_bytes);
  v("context_bytes", m.context_bytes);
  v("bar1_bytes", m.bar1_bytes);
  v("bus_bits", m.bus_bits);
  v("l2_bytes", m.l2_bytes);
}

template <typename V>
void describe(V& v, Clocks& c) {
  v("graphics_max_mhz", c.graphics_max_mhz);
  v("graphics_min_mhz", c.graphics_min_mhz);
  v("graphics_step_mhz", c.graphics_step_mhz);
  v("graphics_default_mhz", c.graphics_default_mhz);
  v("memory_max_mhz", c.memory_max_mhz);
  v("memory_idle_mhz", c.memory_idle_mhz);
  v("video_max_mhz", c.video_max_mhz);
}

template <typename V>
void describe(V& v, Power& p) {
  v("limit_default_mw", p.limit_default_mw);
  v("limit_min_mw", p.limit_min_mw);
  v("limit_max_mw", p.limit_max_mw);
  v("idle_mw", p.idle_mw);
}

template <typename V>
void describe(V& v, Temperatures& t) {
  v("idle_c", t.idle_c);
  v("busy_c", t.busy_c);
  v("gpu_max_c", t.gpu_max_c);
  v("slowdown_c", t.slowdown_c);
  v("shutdown_c", t.shutdown_c);
  v("memory_max_c", t.memory_max_c);
}

template <typename V>
void describe(V& v, Pcie& p) {
  v("generation", p.generation);
  v("width", p.width);
  v("host_gbytes_per_s", p.host_gbytes_per_s);
}

template <typename V>
void describe(V& v, Nvlink& n) {
  v("version", n.version);
  v("links", n.links);
  v("link_mb_per_s", n.link_mb_per_s);
}

template <typename V>
void describe(V& v, Timing& t) {
  v("launch_ns", t.launch_ns);
  v("start_ns", t.start_ns);
  v("graph_launch_ns", t.graph_launch_ns);
  v("graph_node_ns", t.graph_node_ns);
  v("alloc_ns", t.alloc_ns);
  v("free_ns", t.free_ns);
  v("context_create_ns", t.context_create_ns);
  v("copy_latency_ns", t.copy_latency_ns);
  v("time_slice_ns", t.time_slice_ns);
  v("context_switch_ns", t.context_switch_ns);
  v("utilisation_period_ns", t.utilisation_period_ns);
}

template <typename V>
void describe(V& v, MigProfile& p) {
  v("name", p.name);
  v("id", p.id);
  v("compute_slices", p.compute_slices);
  v("memory_slots", p.memory_slots);
  v("starts", p.starts);
  v("max_instances", p.max_instances);
  v("sms", p.sms);
  v("memory_mib", p.memory_mib);
  v("copy_engines", p.copy_engines);
  v("decoders", p.decoders);
  v("jpeg_engines", p.jpeg_engines);
  v("ofa_engines", p.ofa_engines);
}

template <typename V>
void describe(V& v, GpuModel& m) {
  v("name", m.name);
  v("product", m.product);
  v("brand", m.brand);
  v("architecture", m.architecture);
  v("compute_capability", m.compute_capability);
  v("sms", m.sms);
  v("cores_per_sm", m.cores_per_sm);
  v("copy_engines", m.copy_engines);
  v("encoders", m.encoders);
  v("decoders", m.decoders);
  v("fans", m.fans);
  v("ecc", m.ecc);
  v("integrated_cpu", m.integrated_cpu);
  Hex device{m.pci_device_id};
  Hex subsystem{m.pci_subsystem_id};
  v("pci_device_id", device);
  v("pci_subsystem_id", subsystem);
  v("board_part", m.board_part);
  v("vbios", m.vbios);
  v("memory", m.memory);
  v("clocks", m.clocks);
  v("power", m.power);
  v("temperatures", m.temperatures);
  v("pcie", m.pcie);
  v("nvlink", m.nvlink);
  v("timing", m.timing);
  // Left out where the product has no MIG.
  std::optional<std::vector<MigProfile>> mig;
  if (!m.mig.empty()) mig = m.mig;
  v("mig", mig);
  m.mig = std::move(mig).value_or(std::vector<MigProfile>());
}

namespace {

constexpr std::int64_t kLongestKernelBlockNs = 3'600'000'000'000;

// A row of a matrix: words between spaces, "X" for the place itself.
std::vector<std::string_view> words_of(std::string_view row) {
  std::vector<std::string_view> words;
  while (!row.empty()) {
    const std::size_t end = std::min(row.find(' '), row.size());
    if (end > 0) words.push_back(row.substr(0, end));
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return words;
}

bool read_cell(std::string_view text, unsigned& links) {
  links = 0;
  if (text == "X") return true;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), links);
  return fault == std::errc{} && end == text.data() + text.size() && links > 0 ? links <= 64
                                                                               : text == "0";
}

bool read_cell(std::string_view text, PciePath& path) { return from_text(text, path); }

std::string cell(unsigned links) { return links == 0 ? "0" : std::to_string(links); }
std::string cell(PciePath path) { return to_text(path); }

template <typename T>
bool row_from_text(std::string_view text, std::vector<T>& row) {
  for (const std::string_view word : words_of(text))
    if (!read_cell(word, row.emplace_back())) return false;
  return true;
}

template <typename T>
std::string row_text(std::span<const T> row) {
  std::string text;
  for (const T& value : row) text += (text.empty() ? "" : " ") + cell(value);
  return text;
}

template <typename T>
void read_matrix(Fields& fields, const char* key, std::vector<std::vector<T>>& matrix) {
  std::vector<std::string> rows;
  fields.optional(key, rows);
  matrix.clear();
  for (const std::string& row : rows)
    if (!row_from_text(row, matrix.emplace_back())) fields.reject(key, "not valid: " + row);
}

template <typename T>
Json matrix_json(const std::vector<std::vector<T>>& matrix) {
  Json rows = Json::array();
  for (const auto& row : matrix) rows.append(row_text(std::span<const T>(row)));
  return rows;
}

Result<unsigned> model_index(MachineSpec& machine, const std::string& name,
                             const ModelLookup& models) {
  const auto found = std::ranges::find(machine.models, name, &GpuModel::name);
  if (found == machine.models.end()) {
    auto model = models(name);
    if (!model) return model.error();
    machine.models.push_back(std::move(*model));
    return static_cast<unsigned>(machine.models.size() - 1);
  }
  return static_cast<unsigned>(found - machine.models.begin());
}

Status read_gpu(const Json& json, const std::string& where, const ModelLookup& models,
                MachineSpec& machine) {
  GpuSpec gpu;
  gpu.minor = static_cast<unsigned>(machine.gpus.size());
  std::string model;
  std::string uuid;
  std::string pci;
  Fields fields(json, where);
  fields.required("model", model).required("pci", pci).optional("uuid", uuid);
  fields.optional("serial", gpu.serial).optional("numa", gpu.numa).optional("minor", gpu.minor);
  if (!pci.empty() && !from_text(pci, gpu.pci)) fields.reject("pci", "not valid: " + pci);
  if (!uuid.empty() && !from_text(uuid, gpu.uuid)) fields.reject("uuid", "not valid: " + uuid);
  if (Status status = fields.done(); !status) return status;
  auto index = model_index(machine, model, models);
  if (!index) return Error{index.error().code, where + ".model: " + index.error().message};
  gpu.model = *index;
  machine.gpus.push_back(std::move(gpu));
  return {};
}

Status read_nic(const Json& json, const std::string& where, MachineSpec& machine) {
  Nic& nic = machine.nics.emplace_back();
  std::string row;
  Fields fields(json, where);
  fields.required("name", nic.name).required("pcie", row);
  if (!row_from_text(row, nic.to_gpu)) fields.reject("pcie", "not valid: " + row);
  return fields.done();
}

// Reads each object of a list with `read`; stops at the first fault.
template <typename Read>
Status read_list(Fields& fields, const char* key, Read read) {
  std::vector<Json> list;
  fields.optional(key, list);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (Status status = read(list[i], fields.place(key) + "[" + std::to_string(i) + "]"); !status)
      return status;
  return {};
}

Status read_driver(Fields& fields, DriverVersion& driver) {
  std::string cuda = "13.0";
  fields.optional("cuda", cuda);
  const DriverVersion* known = driver_for(cuda);
  if (known == nullptr)
    fields.reject("cuda", "no driver " + cuda + "; there are " + known_drivers());
  else
    driver = *known;
  return {};
}

void read_kernels(Fields& fields, MachineSpec& machine) {
  Json kernels = Json::object();
  fields.optional("kernels", kernels);
  const Json::Object* named = kernels.if_object();
  if (named == nullptr) {
    fields.reject("kernels", "expected an object, not " + std::string(kernels.kind()));
    return;
  }
  for (const Json::Member& kernel : *named) {
    const std::int64_t* ns = kernel.value.if_int();
    if (ns == nullptr || *ns < 1 || *ns > kLongestKernelBlockNs)
      fields.reject("kernels", kernel.key + ": expected 1 to 3600000000000 nanoseconds");
    else
      machine.kernel_block_ns[kernel.key] = static_cast<std::uint64_t>(*ns);
  }
}

Status read_parts(Fields& fields, const ModelLookup& models, MachineSpec& machine) {
  Status status = read_list(fields, "models", [&](const Json& json, const std::string& at) {
    return format::read_described(json, at, machine.models.emplace_back());
  });
  if (status)
    status = read_list(fields, "gpus", [&](const Json& json, const std::string& at) {
      return read_gpu(json, at, models, machine);
    });
  if (status)
    status = read_list(fields, "nics", [&](const Json& json, const std::string& at) {
      return read_nic(json, at, machine);
    });
  return status;
}

}  // namespace

Result<GpuModel> model_from_json(const Json& json, std::string_view where) {
  GpuModel model;
  if (Status status = format::read_described(json, where, model); !status) return status.error();
  if (Status status = check_model(model, where); !status) return status.error();
  return model;
}

Result<MachineSpec> machine_from_json(const Json& json, std::string_view where,
                                      const ModelLookup& models) {
  MachineSpec machine;
  std::string about;  // for the reader of the file
  std::vector<std::string> numa;
  Fields fields(json, std::string(where));
  fields.optional("about", about).optional("name", machine.name);
  fields.optional("preset", machine.preset).optional("nvswitch", machine.nvswitch);
  fields.optional("numa", numa).optional("time_scale_micro", machine.time_scale_micro);
  fields.optional("mps", machine.mps);
  read_kernels(fields, machine);
  for (std::string& cpus : numa) machine.numa.push_back({std::move(cpus)});
  if (Status status = read_driver(fields, machine.driver); !status) return status.error();
  if (Status status = read_parts(fields, models, machine); !status) return status.error();
  read_matrix(fields, "nvlinks", machine.nvlinks);
  read_matrix(fields, "pcie", machine.pcie);
  if (Status status = fields.done(); !status) return status.error();
  if (Status status = check_machine(machine, where); !status) return status.error();
  return machine;
}

Json to_json(const GpuModel& model) { return format::write_described(model); }

Json to_json(const MachineSpec& machine) {
  Json models = Json::array();
  for (const GpuModel& model : machine.models) models.append(to_json(model));
  Json gpus = Json::array();
  for (const GpuSpec& gpu : machine.gpus)
    gpus.append(Json::object()
                    .set("model", machine.models[gpu.model].name)
                    .set("uuid", gpu_uuid_text(gpu.uuid))
                    .set("serial", gpu.serial)
                    .set("pci", gpu.pci.text())
                    .set("numa", gpu.numa)
                    .set("minor", gpu.minor));
  Json numa = Json::array();
  for (const NumaNode& node : machine.numa) numa.append(node.cpus);
  Json nics = Json::array();
  for (const Nic& nic : machine.nics)
    nics.append(Json::object()
                    .set("name", nic.name)
                    .set("pcie", row_text(std::span<const PciePath>(nic.to_gpu))));
  Json kernels = Json::object();
  for (const auto& [kernel, ns] : machine.kernel_block_ns) kernels.set(kernel, ns);
  Json json;
  json.set("name", machine.name).set("preset", machine.preset);
  json.set("cuda", cuda_text(machine.driver)).set("time_scale_micro", machine.time_scale_micro);
  json.set("mps", machine.mps).set("kernels", std::move(kernels)).set("numa", std::move(numa));
  json.set("nvswitch", machine.nvswitch).set("gpus", std::move(gpus));
  json.set("nvlinks", matrix_json(machine.nvlinks)).set("pcie", matrix_json(machine.pcie));
  json.set("nics", std::move(nics)).set("models", std::move(models));
  return json;
}

}  // namespace aliquot::simdriver
