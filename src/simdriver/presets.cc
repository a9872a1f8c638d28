#include "simdriver/presets.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "common/files.h"
#include "format/json.h"
#include "simdriver/machine_json.h"
#include "simdriver/machine_validity.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

Result<format::Json> read_json(const fs::path& path) {
  auto text = read_file(path, 4u << 20);
  if (!text) return text.error();
  return format::parse_json(*text, path.string());
}

Result<GpuModel> read_model(const fs::path& simulator, std::string_view name) {
  // The name becomes part of a path: nothing that leaves the directory.
  if (name.empty() || name.find('/') != std::string_view::npos || name.front() == '.')
    return Error{Errc::kInvalid, "model \"" + std::string(name) + "\": not a model's name"};
  const fs::path path = simulator / "models" / (std::string(name) + ".json");
  auto json = read_json(path);
  if (!json) return json.error();
  return model_from_json(*json, path.string());
}

// "h20x4" -> "h20" and 4; "h20" -> "h20" and 0.
struct Counted {
  std::string family;
  std::size_t count = 0;
};

Counted counted(const std::string& name) {
  const std::size_t x = name.rfind('x');
  if (x == std::string::npos || x == 0 || x + 1 == name.size()) return {name, 0};
  std::size_t count = 0;
  const auto [end, fault] = std::from_chars(&name[x + 1], name.data() + name.size(), count);
  if (fault != std::errc{} || end != name.data() + name.size() || count == 0) return {name, 0};
  return {name.substr(0, x), count};
}

struct PresetFile {
  fs::path path;
  std::size_t count = 0;  // GPUs asked for; 0: as many as the file has
};

Result<PresetFile> find_preset(const MachineRequest& request, const fs::path& simulator) {
  if (request.node.ends_with(".json") || request.node.find('/') != std::string::npos)
    return PresetFile{request.node, 0};
  auto names = preset_names(simulator);
  if (!names) return names.error();
  if (std::ranges::find(*names, request.node) != names->end())
    return PresetFile{simulator / "presets" / (request.node + ".json"), 0};
  const Counted wanted = counted(request.node);
  std::string known;
  for (const std::string& name : *names) {
    if (counted(name).family == wanted.family)
      return PresetFile{simulator / "presets" / (name + ".json"), wanted.count};
    known += (known.empty() ? "" : ", ") + name;
  }
  return Error{Errc::kNotFound, "node " + request.node + ": no such preset; there are " + known +
                                    " (with any count, as h20x4), or give a .json file"};
}

// One GPU more than the file has: a sibling of GPU `like` on a PCI bus of its own. It joins the
// NVLink fabric where that is a switch; otherwise it is reached over the CPUs' link.
void add_gpu(MachineSpec& machine, std::size_t like) {
  GpuSpec gpu = machine.gpus[like];
  const unsigned fabric = machine.nvswitch && machine.gpus.size() > 1 ? machine.nvlinks[0][1] : 0;
  gpu.uuid = {};
  gpu.serial.clear();
  gpu.minor = static_cast<unsigned>(machine.gpus.size());
  gpu.pci.domain = machine.gpus.back().pci.domain + 1;
  for (auto& row : machine.nvlinks) row.push_back(fabric);
  for (auto& row : machine.pcie) row.push_back(PciePath::kSys);
  for (Nic& nic : machine.nics) nic.to_gpu.push_back(PciePath::kSys);
  machine.gpus.push_back(std::move(gpu));
  machine.nvlinks.emplace_back(machine.gpus.size(), fabric).back() = 0;
  machine.pcie.emplace_back(machine.gpus.size(), PciePath::kSys).back() = PciePath::kSelf;
}

void resize(MachineSpec& machine, std::size_t count) {
  const std::size_t own = machine.gpus.size();
  while (machine.gpus.size() < count) add_gpu(machine, machine.gpus.size() % own);
  machine.gpus.resize(count);
  machine.nvlinks.resize(count);
  machine.pcie.resize(count);
  for (auto& row : machine.nvlinks) row.resize(count);
  for (auto& row : machine.pcie) row.resize(count);
  for (Nic& nic : machine.nics) nic.to_gpu.resize(count);
}

// splitmix64 over FNV-1a: the same machine name gives the same GPUs on every start, another name
// other ones.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void identify(MachineSpec& machine) {
  std::uint64_t seed = 0xcbf29ce484222325u;
  for (const char c : machine.name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    GpuSpec& gpu = machine.gpus[i];
    const std::uint64_t high = mix(seed + 2 * i);
    const std::uint64_t low = mix(seed + 2 * i + 1);
    if (gpu.uuid == Uuid{}) {
      for (std::size_t byte = 0; byte < 8; ++byte) {
        gpu.uuid[byte] = static_cast<std::uint8_t>(high >> (8 * byte));
        gpu.uuid[8 + byte] = static_cast<std::uint8_t>(low >> (8 * byte));
      }
      gpu.uuid[6] = static_cast<std::uint8_t>((gpu.uuid[6] & 0x0f) | 0x40);  // RFC 9562, version 4
      gpu.uuid[8] = static_cast<std::uint8_t>((gpu.uuid[8] & 0x3f) | 0x80);
    }
    if (gpu.serial.empty()) gpu.serial = std::to_string(1320000000000u + high % 10000000000u);
  }
}

}  // namespace

Result<fs::path> simulator_directory() {
  std::error_code fault;
  const fs::path self = fs::read_symlink("/proc/self/exe", fault);
  if (fault) return Error{Errc::kUnavailable, "read /proc/self/exe: " + fault.message()};
  return self.parent_path().parent_path() / "lib/aliquot/sim";
}

Result<std::vector<std::string>> preset_names(const fs::path& simulator) {
  std::vector<std::string> names;
  std::error_code fault;
  fs::directory_iterator files(simulator / "presets", fault);
  if (fault)
    return Error{Errc::kNotFound,
                 "read " + (simulator / "presets").string() + ": " + fault.message()};
  for (const fs::directory_entry& file : files)
    if (file.path().extension() == ".json") names.push_back(file.path().stem());
  std::ranges::sort(names);
  return names;
}

Result<MachineSpec> make_machine(const MachineRequest& request, const fs::path& simulator) {
  const auto file = find_preset(request, simulator);
  if (!file) return file.error();
  if (file->count > kMostGpus)
    return Error{Errc::kInvalid, "node " + request.node + ": at most 64 GPUs"};
  const auto json = read_json(file->path);
  if (!json) return json.error();
  auto machine = machine_from_json(*json, file->path.string(), [&](std::string_view model) {
    return read_model(simulator, model);
  });
  if (!machine) return machine.error();
  if (!request.cuda.empty()) {
    const DriverVersion* driver = driver_for(request.cuda);
    if (driver == nullptr)
      return Error{Errc::kInvalid, "driver " + request.cuda + ": cannot be simulated; there are " +
                                       known_drivers()};
    machine->driver = *driver;
  }
  if (file->count > 0) resize(*machine, file->count);
  machine->preset = request.node;
  machine->name = request.name.empty() ? file->path.stem().string() : request.name;
  identify(*machine);
  return machine;
}

MachineSpec with_free_calls(MachineSpec machine) {
  for (GpuModel& model : machine.models) {
    Timing& timing = model.timing;
    timing.launch_ns = timing.graph_launch_ns = timing.graph_node_ns = 0;
    timing.alloc_ns = timing.free_ns = timing.context_create_ns = 0;
  }
  return machine;
}

Result<MachineSpec> read_machine(const fs::path& file) {
  const auto json = read_json(file);
  if (!json) return json.error();
  return machine_from_json(*json, file.string(), [&](std::string_view name) -> Result<GpuModel> {
    return Error{Errc::kNotFound, "model " + std::string(name) + " is not in the file"};
  });
}

}  // namespace aliquot::simdriver
