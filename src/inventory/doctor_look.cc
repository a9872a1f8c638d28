// What the doctor looks at: gathered from the driver with deadlines, from sysfs and from files.

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "common/files.h"
#include "format/described.h"
#include "inventory/bounded_child.h"
#include "inventory/doctor.h"

namespace aliquot::inventory {

template <typename V>
static void describe(V& v, HealthReading& reading) {
  v("answered", reading.answered);
  v("off_bus", reading.off_bus);
  v("uncorrected", reading.uncorrected);
  v("remap_failed", reading.remap_failed);
  v("remap_pending", reading.remap_pending);
  std::vector<int> links(reading.nvlinks_up.begin(), reading.nvlinks_up.end());
  v("nvlinks_up", links);
  reading.nvlinks_up.assign(links.begin(), links.end());
  v("nvlink_errors", reading.nvlink_errors);
  v("temperature_c", reading.temperature_c);
  v("slowdown_c", reading.slowdown_c);
}

template <typename V>
static void describe(V& v, GpuLook& look) {
  v("trouble", look.trouble);
  v("denied", look.denied);
  v("uuid", look.uuid);
  v("name", look.name);
  v("bus_id", look.bus_id);
  v("health", look.health);
  v("persistence", look.persistence);
  v("compute_mode", look.compute_mode);
  v("memory_bytes", look.memory_bytes);
}

// What a child tells of the driver as a whole.
struct DriverLook {
  std::string trouble;
  bool denied = false;
  std::string driver_version;
  std::string nvml_version;
  int cuda = 0;
  unsigned gpus = 0;
};

template <typename V>
static void describe(V& v, DriverLook& look) {
  v("trouble", look.trouble);
  v("denied", look.denied);
  v("driver_version", look.driver_version);
  v("nvml_version", look.nvml_version);
  v("cuda", look.cuda);
  v("gpus", look.gpus);
}

namespace {

namespace fs = std::filesystem;

// Of NVML calls that are told to be slow the slowest take tenths of a second; a driver that comes
// up takes seconds.
constexpr Nanoseconds kDriverLimit = 5 * kSecond;

template <typename Look>
bool failed(const Error& error, Look& look) {
  look.trouble = error.message;
  look.denied = error.code == Errc::kDenied;
  return true;
}

DriverLook ask_driver(const fs::path& library) {
  DriverLook look;
  const auto nvml = open_nvml(library);
  if (!nvml) return failed(nvml.error(), look), look;
  const auto system = (*nvml)->system();
  if (!system) return failed(system.error(), look), look;
  look.driver_version = system->driver_version;
  look.nvml_version = system->nvml_version;
  look.cuda = system->cuda_version;
  const auto gpus = (*nvml)->count();
  if (!gpus) return failed(gpus.error(), look), look;
  look.gpus = *gpus;
  return look;
}

GpuLook ask_gpu(const fs::path& library, unsigned index) {
  GpuLook look;
  const auto nvml = open_nvml(library);
  if (!nvml) return failed(nvml.error(), look), look;
  const auto identity = (*nvml)->gpu(index);
  if (identity) {
    look.uuid = identity->uuid;
    look.name = identity->name;
    look.bus_id = identity->bus_id;
  }
  const auto health = (*nvml)->health(index);
  if (!health) return failed(health.error(), look), look;
  look.health = *health;
  if (look.health.off_bus) return look;
  if (!identity) return failed(identity.error(), look), look;
  const auto state = (*nvml)->state(index);
  if (!state) return failed(state.error(), look), look;
  look.persistence = state->persistence;
  look.compute_mode = state->compute_mode;
  look.memory_bytes = state->memory.total_bytes;
  return look;
}

// The child's answer, or that there was none.
template <typename Look>
bool receive(Result<BoundedChild>& child, Nanoseconds deadline, Look& look, std::string& trouble) {
  auto text = child ? child->wait(deadline) : Result<std::string>(child.error());
  if (!text) {
    trouble = text.error().message;
    return false;
  }
  const auto json = format::parse_json(*text, "probe");
  const Status read = json ? format::read_described(*json, "probe", look) : json.error();
  if (!read) trouble = read.error().message;
  return read.has_value();
}

void look_at_driver(const fs::path& library, DoctorView& view) {
  const MonotonicClock clock;
  auto child =
      BoundedChild::begin([&] { return format::write_described(ask_driver(library)).dump(); });
  DriverLook whole;
  std::string trouble;
  view.hung = !receive(child, clock.now() + kDriverLimit, whole, trouble);
  view.trouble = view.hung ? trouble : whole.trouble;
  view.denied = whole.denied;
  view.system = {whole.driver_version, whole.nvml_version, whole.cuda};
  std::vector<Result<BoundedChild>> children;
  for (unsigned i = 0; i < whole.gpus; ++i)
    children.push_back(
        BoundedChild::begin([&] { return format::write_described(ask_gpu(library, i)).dump(); }));
  const Nanoseconds deadline = clock.now() + kDriverLimit;
  for (unsigned i = 0; i < whole.gpus; ++i) {
    GpuLook look;
    std::string silence;
    const bool answered = receive(children[i], deadline, look, silence);
    if (!answered) look = GpuLook{};
    look.index = i;
    look.hung = !answered;
    if (!answered) look.trouble = silence;
    view.gpus.push_back(std::move(look));
  }
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..."; the open module's line has
// other words before the number.
std::string module_version(const Sysfs& proc) {
  const std::string text = proc.text("driver/nvidia/version").value_or("");
  for (std::size_t at = text.find("  "); at != std::string::npos; at = text.find("  ", at + 2)) {
    const std::string word = text.substr(at + 2, text.find(' ', at + 2) - at - 2);
    if (!word.empty() && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return "";
}

void look_at_host(const DoctorPaths& paths, DoctorView& view) {
  const Sysfs sys(paths.roots.sys);
  const Sysfs proc(paths.roots.proc);
  view.host = read_host(sys, proc);
  view.mps = read_mps(paths.roots.mps_pipes, proc);
  view.gpu_direct = read_gpu_direct(sys, view.host.kernel);
  view.nics = read_rdma(sys);
  view.pci = read_pci(sys);
  view.module_version = module_version(proc);
  view.nouveau = sys.has("module/nouveau");
  for (const RdmaDevice& nic : view.nics)
    for (const RdmaPort& port : nic.ports) {
      if (port.net_device.empty()) continue;
      const fs::path net = fs::path("class/net") / port.net_device;
      if (const auto pfc = sys.text(net / "qos/pfc")) view.pfc[port.net_device] = *pfc;
      std::string ecn;
      for (const std::string& priority : sys.list(net / "ecn/roce_np/enable"))
        ecn += sys.text(net / "ecn/roce_np/enable" / priority).value_or("");
      if (!ecn.empty()) view.ecn[port.net_device] = ecn;
    }
  struct statvfs shm{};
  if (statvfs(paths.shm.c_str(), &shm) == 0)
    view.shm_bytes = static_cast<std::uint64_t>(shm.f_blocks) * shm.f_frsize;
}

// A device node that is not there, and one that the device cgroup keeps from us: opening such a
// one fails with EPERM, a mode that forbids it with EACCES.
void look_at_node(const fs::path& node, DoctorView& view) {
  const UniqueFd opened(open(node.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (opened) return;
  if (errno == ENOENT) view.lost_nodes.push_back(node);
  if (errno == EPERM) view.denied_nodes.push_back(node);
}

// Every "hostPath" or device "path" of the NVIDIA CDI specs should exist.
void look_at_cdi(const fs::path& root, DoctorView& view) {
  for (const char* directory : {"etc/cdi", "var/run/cdi"}) {
    std::error_code error;
    for (fs::directory_iterator spec(root / directory, error), end; !error && spec != end;
         spec.increment(error)) {
      const auto text = read_file(spec->path(), 4u << 20);
      if (!text || text->find("nvidia.com/gpu") == std::string::npos) continue;
      for (std::size_t at = text->find("/usr/"); at != std::string::npos;
           at = text->find("/usr/", at + 1)) {
        const std::string file = text->substr(at, text->find_first_of("\"' \n,", at) - at);
        std::error_code ignored;
        if (file.find(".so.") != std::string::npos && !fs::exists(root / file.substr(1), ignored))
          view.stale_cdi.push_back(spec->path().string() + " names " + file);
      }
    }
  }
}

// Copies of libcuda with a version in their name that is not the driver's.
void look_at_libraries(const fs::path& root, const std::string& version, DoctorView& view) {
  for (const char* directory : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib",
                                "usr/local/cuda/lib64", "opt/conda/lib"}) {
    std::error_code error;
    for (fs::directory_iterator file(root / directory, error), end; !error && file != end;
         file.increment(error)) {
      const std::string name = file->path().filename();
      if (!name.starts_with("libcuda.so.") || name == "libcuda.so.1") continue;
      if (name.substr(11) != version) view.image_libcudas.push_back(file->path());
    }
  }
}

void look_at_compat(const fs::path& root, DoctorView& view) {
  if (const auto path = view.environment.find("LD_LIBRARY_PATH");
      path != view.environment.end() && path->second.find("/compat") != std::string::npos)
    view.forced_compat.push_back("LD_LIBRARY_PATH=" + path->second);
  std::error_code error;
  for (fs::directory_iterator file(root / "etc/ld.so.conf.d", error), end; !error && file != end;
       file.increment(error))
    if (const auto text = read_file(file->path(), 1u << 16);
        text && text->find("cuda") != std::string::npos &&
        text->find("/compat") != std::string::npos)
      view.forced_compat.push_back(file->path());
}

void look_at_files(const Driver& driver, const DoctorPaths& paths, DoctorView& view) {
  if (!driver.simulated() || fs::exists(paths.dev)) {
    for (const char* node : {"nvidiactl", "nvidia-uvm"}) look_at_node(paths.dev / node, view);
    for (std::size_t i = 0; i < view.gpus.size(); ++i)
      look_at_node(paths.dev / ("nvidia" + std::to_string(i)), view);
  }
  look_at_cdi(paths.root, view);
  look_at_libraries(paths.root, view.system.driver_version, view);
  look_at_compat(paths.root, view);
  const fs::path plugins = paths.root / "var/lib/kubelet/device-plugins";
  std::error_code ignored;
  view.kubelet = fs::exists(plugins, ignored);
  view.kubelet_socket = fs::exists(plugins / "kubelet.sock", ignored);
}

}  // namespace

DoctorPaths paths_of(const Driver& driver) {
  if (!driver.simulated()) return {};
  const fs::path& own = driver.machine_directory;
  return {roots_of(driver), own / "dev", own / "shm", own / "root"};
}

DoctorView look(const Driver& driver, const DoctorPaths& paths,
                std::map<std::string, std::string> environment) {
  DoctorView view;
  view.environment = std::move(environment);
  look_at_driver(driver.libnvidia_ml, view);
  look_at_host(paths, view);
  look_at_files(driver, paths, view);
  return view;
}

}  // namespace aliquot::inventory
