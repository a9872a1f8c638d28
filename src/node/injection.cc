#include "node/injection.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "common/files.h"
#include "format/json.h"
#include "wire/tenant_paths.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using format::Json;

// Where loaders look without a cache of ours: Debian's and Red Hat's families.
constexpr std::array kLoaderDirectories{"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};

// Of a real driver: what CUDA opens by itself.
constexpr std::array kCompanions{"libnvidia-ptxjitcompiler.so", "libnvidia-nvvm.so",
                                 "libnvidia-gpucomp.so", "libcudadebugger.so",
                                 "libnvidia-opencl.so"};

constexpr std::array kCommonNodes{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};

std::string content_name(const std::string& content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Status lay_out_libraries(const fs::path& directory, const std::string& content) {
  std::error_code code;
  if (fs::exists(directory, code)) return {};
  const fs::path building = directory.string() + ".new";
  fs::remove_all(building, code);
  if (const Status made = make_directories(building, 0755); !made) return made;
  if (const Status written = write_file_atomically(building / "libaliquot.so", content, 0755);
      !written)
    return written;
  for (const char* name : wire::kDriverNames) {
    fs::create_symlink("libaliquot.so", building / name, code);
    if (code)
      return Error{Errc::kInternal, "make " + (building / name).string() + ": " + code.message()};
  }
  if (::rename(building.c_str(), directory.c_str()) != 0) return errno_error("make", directory);
  return {};
}

std::vector<std::string> companions_of(const inventory::Driver& driver) {
  std::vector<std::string> found;
  if (driver.simulated()) return found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(driver.libcuda.parent_path(), code)) {
    const std::string name = entry.path().filename().string();
    for (const char* companion : kCompanions)
      if (name.starts_with(companion) && !entry.is_symlink(code))
        found.push_back(entry.path().string());
  }
  return found;
}

void add_driver(const NodeFiles& files, ContainerGift& gift) {
  const inventory::Driver& driver = files.driver;
  gift.mounts.push_back({driver.libcuda.string(), wire::kTenantLibcuda});
  gift.mounts.push_back({driver.libnvidia_ml.string(), wire::kTenantLibnvidiaMl});
  if (driver.simulated()) {
    // What its libraries look for beside their directory.
    const fs::path beside = wire::kTenantDriver;
    for (const char* name : {"socket", "machine.json"})
      gift.mounts.push_back({(driver.machine_directory / name).string(), beside / name});
    return;
  }
  for (const std::string& path : files.companions) {
    const std::string name = fs::path(path).filename();
    const std::string soname = name.substr(0, name.find(".so") + 3) + ".1";
    for (const char* directory : kLoaderDirectories)
      for (const std::string& as : {name, soname})
        gift.mounts.push_back({path, std::string(directory) + "/" + as});
  }
}

void add_nodes(const std::vector<InjectedGpu>& gpus, ContainerGift& gift) {
  for (const char* node : kCommonNodes) gift.devices.push_back({node, node});
  for (const InjectedGpu& gpu : gpus) {
    const std::string node = "/dev/nvidia" + std::to_string(gpu.minor);
    gift.devices.push_back({node, node});
  }
}

}  // namespace

Result<NodeFiles> lay_out_node_files(const fs::path& state, const fs::path& library,
                                     const inventory::Driver& driver) {
  const auto content = read_file(library);
  if (!content) return content.error();
  NodeFiles files;
  files.driver = driver;
  files.companions = companions_of(driver);
  files.libraries = state / "lib" / content_name(*content);
  files.preload = state / "ld.so.preload";
  if (const Status made = make_directories(state / "lib", 0755); !made) return made.error();
  if (const Status laid = lay_out_libraries(files.libraries, *content); !laid) return laid.error();
  const std::string line = std::string(wire::kTenantLibrary) + '\n';
  if (const Status written = write_file_atomically(files.preload, line); !written)
    return written.error();
  return files;
}

ContainerGift injection_of(const NodeFiles& files, const fs::path& lease,
                           const std::vector<InjectedGpu>& gpus) {
  ContainerGift gift;
  gift.mounts.push_back({lease.string(), wire::kTenantLease});
  gift.mounts.push_back({files.libraries.string(), wire::kTenantLibraries});
  gift.mounts.push_back({files.preload.string(), "/etc/ld.so.preload"});
  const std::string library = files.libraries / "libaliquot.so";
  for (const char* directory : kLoaderDirectories)
    for (const char* name : wire::kDriverNames)
      gift.mounts.push_back({library, std::string(directory) + "/" + name});
  add_driver(files, gift);
  gift.create_hook = files.image_check.string();
  if (!files.driver.simulated()) add_nodes(gpus, gift);
  return gift;
}

std::string cdi_name(const std::string& key) { return std::string(kCdiKind) + "=" + key; }

fs::path cdi_path(const fs::path& directory, const std::string& key) {
  return directory / ("aliquot.dev-lease-" + key + ".json");
}

std::string cdi_text(const std::string& key, const ContainerGift& gift) {
  Json mounts = Json::array(), devices = Json::array(), environment = Json::array();
  for (const MountedPath& mount : gift.mounts) {
    Json options = Json::array();
    for (const char* option : {"rbind", "nosuid", "nodev", mount.read_only ? "ro" : "rw"})
      options.append(option);
    mounts.append(Json::object()
                      .set("hostPath", mount.host)
                      .set("containerPath", mount.container)
                      .set("options", options));
  }
  for (const DeviceNode& device : gift.devices)
    devices.append(Json::object()
                       .set("path", device.container)
                       .set("hostPath", device.host)
                       .set("permissions", device.permissions));
  for (const auto& [name, value] : gift.environment) environment.append(name + "=" + value);
  Json edits = Json::object().set("mounts", mounts);
  if (!gift.devices.empty()) edits.set("deviceNodes", devices);
  if (!gift.environment.empty()) edits.set("env", environment);
  if (!gift.create_hook.empty())
    edits.set("hooks",
              Json::array().append(Json::object()
                                       .set("hookName", "createRuntime")
                                       .set("path", gift.create_hook)
                                       .set("args", Json::array().append("aliquot-image-check"))));
  return Json::object()
             .set("cdiVersion", "0.6.0")
             .set("kind", kCdiKind)
             .set("devices", Json::array().append(
                                 Json::object().set("name", key).set("containerEdits", edits)))
             .dump(2) +
         "\n";
}

}  // namespace aliquot::node
