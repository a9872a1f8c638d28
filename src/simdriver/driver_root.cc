#include "simdriver/driver_root.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cctype>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/files.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = ".aliquot-driver-root";
constexpr const char* kLibraries = "usr/lib/x86_64-linux-gnu";

// The driver's numbers; nvidia-uvm gets a free one at load time, 511 is common.
constexpr unsigned kNvidiaMajor = 195;
constexpr unsigned kControlMinor = 255;
constexpr unsigned kUvmMajor = 511;

Status check(const std::error_code& error, const char* what, const fs::path& path) {
  if (!error) return {};
  return Error{Errc::kInternal, std::string(what) + ' ' + path.string() + ": " + error.message()};
}

// Only what a root of ours holds is ever removed.
Status clear(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error) || fs::is_empty(directory, error)) return {};
  if (!fs::exists(directory / kMark, error)) {
    return Error{Errc::kInvalid, "lay out a driver root in " + directory.string() +
                                     ": it holds other files; name a new directory"};
  }
  for (const char* part : {"usr", "dev", "proc"}) {
    fs::remove_all(directory / part, error);
    if (Status removed = check(error, "remove", directory / part); !removed) return removed;
  }
  return {};
}

Status copy_libraries(const RunningMachine& machine, const fs::path& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machine.library_directory(), error)) {
    const fs::path copy = to / entry.path().filename();
    fs::copy(entry.path(), copy, fs::copy_options::copy_symlinks, error);
    if (Status copied = check(error, "copy to", copy); !copied) return copied;
  }
  return check(error, "list", machine.library_directory());
}

Status link_to_machine(const RunningMachine& machine, const fs::path& beside_libraries) {
  std::error_code error;
  for (const char* name : {"socket", "machine.json"}) {
    fs::create_symlink(machine.directory / name, beside_libraries / name, error);
    if (Status linked = check(error, "link", beside_libraries / name); !linked) return linked;
  }
  return {};
}

// The kernel writes a domain of four digits, and small letters.
std::string kernel_bus(const GpuSpec& gpu) {
  std::string text = gpu.pci.text().substr(4);
  for (char& c : text) c = static_cast<char>(std::tolower(c));
  return text;
}

std::string information(const GpuModel& model, const GpuSpec& gpu) {
  return "Model: \t\t " + model.product + "\nIRQ:   \t\t 0\nGPU UUID: \t " +
         gpu_uuid_text(gpu.uuid) + "\nVideo BIOS: \t " + model.vbios +
         "\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
         "Bus Location: \t " +
         kernel_bus(gpu) + "\nDevice Minor: \t " + std::to_string(gpu.minor) +
         "\nGPU Excluded:\t No\n";
}

Status write_proc(const MachineSpec& spec, const fs::path& proc) {
  std::vector<std::pair<fs::path, std::string>> files{
      {proc / "version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + spec.driver.driver +
                             "  (simulated by Aliquot)\n"},
      {proc / "params",
       "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\n"
       "DeviceFileMode: 438\n"}};
  for (unsigned i = 0; i < spec.gpus.size(); ++i) {
    const fs::path directory = proc / "gpus" / kernel_bus(spec.gpus[i]);
    if (Status made = make_directories(directory); !made) return made;
    files.emplace_back(directory / "information", information(spec.model_of(i), spec.gpus[i]));
  }
  for (const auto& [path, text] : files)
    if (Status wrote = write_file_atomically(path, text); !wrote) return wrote;
  return {};
}

void make_device_nodes(const MachineSpec& spec, const fs::path& dev, DriverRoot& root) {
  std::vector<std::pair<std::string, dev_t>> nodes{
      {"nvidiactl", makedev(kNvidiaMajor, kControlMinor)},
      {"nvidia-uvm", makedev(kUvmMajor, 0)},
      {"nvidia-uvm-tools", makedev(kUvmMajor, 1)}};
  for (const GpuSpec& gpu : spec.gpus)
    nodes.emplace_back("nvidia" + std::to_string(gpu.minor), makedev(kNvidiaMajor, gpu.minor));
  for (const auto& [name, number] : nodes) {
    if (mknod((dev / name).c_str(), S_IFCHR | 0666, number) != 0) {
      root.why_no_device_nodes = std::strerror(errno);
      return;
    }
    chmod((dev / name).c_str(), 0666);  // whatever the umask
    ++root.device_nodes;
  }
}

}  // namespace

Result<DriverRoot> lay_out_driver_root(const RunningMachine& machine, const fs::path& smi,
                                       const fs::path& directory) {
  const auto spec = read_machine(machine.directory / "machine.json");
  if (!spec) return spec.error();
  if (const Status cleared = clear(directory); !cleared) return cleared.error();
  const fs::path proc = directory / "proc/driver/nvidia";
  for (const fs::path& made :
       {directory / kLibraries, directory / "usr/bin", directory / "dev", proc})
    if (const Status done = make_directories(made); !done) return done.error();
  Status done = write_file_atomically(directory / kMark, machine.name + "\n");
  if (done) done = copy_libraries(machine, directory / kLibraries);
  if (done) done = link_to_machine(machine, (directory / kLibraries).parent_path());
  if (done) done = write_proc(*spec, proc);
  if (!done) return done.error();
  std::error_code error;
  fs::copy_file(smi, directory / "usr/bin/nvidia-smi", error);
  if (done = check(error, "copy to", directory / "usr/bin/nvidia-smi"); !done) return done.error();
  DriverRoot root;
  make_device_nodes(*spec, directory / "dev", root);
  return root;
}

std::optional<RootMachine> machine_of_root(const fs::path& program) {
  if (program.filename() != "nvidia-smi") return std::nullopt;
  const fs::path root = program.parent_path().parent_path().parent_path();
  auto name = read_file(root / kMark);
  if (!name) return std::nullopt;
  name->pop_back();  // its newline
  const fs::path libraries = root / kLibraries;
  return RootMachine{*std::move(name), libraries / "libnvidia-ml.so.1",
                     libraries.parent_path() / "machine.json"};
}

}  // namespace aliquot::simdriver
