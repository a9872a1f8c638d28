#include "cli/tenant_namespace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/files.h"
#include "common/unique_fd.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;

using wire::kDriverNames;

// A copy of the mount at `what`, attached nowhere yet: what hides the path later does not hide
// this.
Result<UniqueFd> take(const fs::path& what) {
  UniqueFd tree(
      ::open_tree(AT_FDCWD, what.c_str(),
                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_RECURSIVE)));
  if (!tree) return errno_error("take the mount of", what);
  return tree;
}

Status place(UniqueFd tree, const fs::path& where) {
  if (::move_mount(tree.get(), "", AT_FDCWD, where.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return errno_error("mount on", where);
  return {};
}

Status place(Result<UniqueFd> tree, const fs::path& where) {
  if (!tree) return tree.error();
  return place(*std::move(tree), where);
}

Status make_read_only(const UniqueFd& tree) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                      sizeof attributes) != 0)
    return errno_error("make read-only", "a mount");
  return {};
}

Status mount_tmpfs(const fs::path& where, const char* options) {
  if (::mount("aliquot", where.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
    return errno_error("mount tmpfs on", where);
  return {};
}

// Not atomic on purpose: /proc/self/uid_map takes one write, and the rest is seen by nobody yet.
Status write_plain(const fs::path& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_error("write", path);
  return {};
}

// The same file at a new name, which is made for it.
Status place_file(Result<UniqueFd> tree, const fs::path& where) {
  if (const Status made = write_plain(where, ""); !made) return made;
  return place(std::move(tree), where);
}

Status make_directory(const fs::path& path) {
  return ::mkdir(path.c_str(), 0755) == 0 ? Status() : Status(errno_error("make", path));
}

// Root needs a mount namespace only; others get a user namespace in which they keep their ids.
Status unshare_mounts() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0)
    return errno_error("make a mount namespace for", "the command");
  if (uid != 0) {
    const std::string user = std::to_string(uid) + ' ' + std::to_string(uid) + " 1\n";
    const std::string group = std::to_string(gid) + ' ' + std::to_string(gid) + " 1\n";
    for (const auto& [file, text] : {std::pair<const char*, std::string>{"setgroups", "deny"},
                                     {"uid_map", user},
                                     {"gid_map", group}})
      if (const Status written = write_plain(fs::path("/proc/self") / file, text); !written)
        return written;
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return errno_error("make private", "/");
  return {};
}

// Puts a tmpfs over `directory` with the old entries in it, so that somebody who may not write to
// the directory can have one more entry there.
Status make_extensible(const fs::path& directory) {
  struct Kept {
    fs::path name;
    UniqueFd tree;
    bool is_directory;
  };
  std::error_code code;
  std::vector<Kept> kept;
  std::vector<std::pair<fs::path, fs::path>> links;
  for (const auto& entry : fs::directory_iterator(directory, code)) {
    if (entry.is_symlink(code)) {
      links.emplace_back(entry.path(), fs::read_symlink(entry.path(), code));
      continue;
    }
    Result<UniqueFd> tree = take(entry.path());
    if (!tree) continue;  // what we may not even look at, the tenant may not either
    kept.push_back({entry.path(), *std::move(tree), entry.is_directory(code)});
  }
  if (const Status mounted = mount_tmpfs(directory, "mode=0755"); !mounted) return mounted;
  for (const auto& [name, target] : links) fs::create_symlink(target, name, code);
  for (Kept& entry : kept) {
    Status made = entry.is_directory ? make_directory(entry.name) : write_plain(entry.name, "");
    if (!made) return made;
    if (const Status placed = place(std::move(entry.tree), entry.name); !placed) return placed;
  }
  return {};
}

Status make_tenant_root() {
  std::error_code code;
  if (!fs::is_directory(kTenantRoot, code) && ::mkdir(kTenantRoot, 0755) != 0) {
    if (const Status extended = make_extensible("/run"); !extended) return extended;
    if (const Status made = make_directory(kTenantRoot); !made) return made;
  }
  return mount_tmpfs(kTenantRoot, "mode=0755,size=1m");
}

// All that is shown, taken before anything is hidden.
struct Sources {
  UniqueFd lease, library, libcuda, libnvidia_ml, loader_cache, cache_directory;
  UniqueFd socket, machine_json;  // of a simulated machine
};

Status take_into(UniqueFd& place, const fs::path& what) {
  Result<UniqueFd> tree = take(what);
  if (!tree) return tree.error();
  place = *std::move(tree);
  return {};
}

Result<Sources> take_sources(const TenantView& view) {
  Sources sources;
  std::vector<std::pair<UniqueFd*, fs::path>> wanted{{&sources.lease, view.lease},
                                                     {&sources.library, view.library},
                                                     {&sources.libcuda, view.libcuda},
                                                     {&sources.libnvidia_ml, view.libnvidia_ml}};
  if (!view.simulated_machine.empty()) {
    wanted.emplace_back(&sources.socket, view.simulated_machine / "socket");
    wanted.emplace_back(&sources.machine_json, view.simulated_machine / "machine.json");
  }
  for (const auto& [place, path] : wanted)
    if (const Status taken = take_into(*place, path); !taken) return taken.error();
  if (const Status locked = make_read_only(sources.lease); !locked) return locked.error();
  if (Result<UniqueFd> cache = take(view.loader_cache)) sources.loader_cache = *std::move(cache);
  sources.cache_directory =
      UniqueFd(::open(view.loader_cache.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return sources;
}

Status show_library(Sources& sources) {
  const fs::path lib = fs::path(kTenantRoot) / "lib";
  if (const Status made = make_directory(lib); !made) return made;
  if (const Status shown = place_file(std::move(sources.library), kTenantLibrary); !shown)
    return shown;
  for (const char* name : kDriverNames)
    if (const Status shown = place_file(take(kTenantLibrary), lib / name); !shown) return shown;
  return {};
}

Status show_driver(const TenantView& view, Sources& sources) {
  const fs::path driver = kTenantDriver;
  for (const fs::path& directory : {driver, fs::path(kTenantLibcuda).parent_path()})
    if (const Status made = make_directory(directory); !made) return made;
  std::vector<std::pair<UniqueFd*, fs::path>> shown{{&sources.libcuda, kTenantLibcuda},
                                                    {&sources.libnvidia_ml, kTenantLibnvidiaMl}};
  if (!view.simulated_machine.empty()) {
    shown.emplace_back(&sources.socket, driver / "socket");
    shown.emplace_back(&sources.machine_json, driver / "machine.json");
  }
  for (const auto& [tree, path] : shown)
    if (const Status placed = place_file(std::move(*tree), path); !placed) return placed;
  if (!view.simulated_machine.empty()) return {};  // its own directory is hidden
  for (const fs::path& file : {view.libcuda, view.libnvidia_ml})
    if (const Status replaced = place(take(kTenantLibrary), file); !replaced) return replaced;
  return {};
}

// Runs ldconfig over our directory and the system's, without touching the system's own files.
Status make_loader_cache(const fs::path& cache) {
  const std::string conf = cache.string() + ".conf";
  const std::string lines = std::string(kTenantRoot) + "/lib\ninclude /etc/ld.so.conf\n";
  if (const Status written = write_plain(conf, lines); !written) return written;
  std::array<std::string, 7> words{"ldconfig", "-X", "-i", "-f", conf, "-C", cache.string()};
  std::array<char*, 8> argv{};
  for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  char* no_environment = nullptr;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/sbin/ldconfig", &actions, nullptr, argv.data(), &no_environment);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) != child || status != 0)
    return Error{Errc::kUnavailable, "run /sbin/ldconfig: it failed"};
  return {};
}

// Makes the loader find our names whatever LD_LIBRARY_PATH says, and load the library first where
// the machine has a preload file to put it in.
Status show_loader_files(Sources& sources) {
  const fs::path cache = fs::path(kTenantRoot) / "ld.so.cache";
  std::error_code code;
  if (sources.loader_cache) {
    if (const Status shown = place_file(std::move(sources.loader_cache), cache); !shown)
      return shown;
  } else {
    if (const Status made = make_loader_cache(cache); !made) return made;
    // Kept for the next tenant; that it could not be kept costs only time.
    if (const auto text = read_file(cache); text && sources.cache_directory)
      (void)write_file_atomically(
          "/proc/self/fd/" + std::to_string(sources.cache_directory.get()) + "/ld.so.cache", *text);
  }
  if (fs::exists("/etc/ld.so.cache", code))
    if (const Status shown = place(take(cache), "/etc/ld.so.cache"); !shown) return shown;
  if (!fs::exists("/etc/ld.so.preload", code)) return {};
  const fs::path preload = fs::path(kTenantRoot) / "ld.so.preload";
  const auto already = read_file("/etc/ld.so.preload", 1 << 16);
  if (!already) return already.error();
  const std::string lines = std::string(kTenantLibrary) + '\n' + *already;
  if (const Status written = write_plain(preload, lines); !written) return written;
  return place(take(preload), "/etc/ld.so.preload");
}

// Other leases, the broker's memory and the machine's own libraries are not the tenant's.
Status hide_state(const fs::path& state_directory) {
  std::error_code code;
  // Under /run/aliquot the new root has hidden it already.
  if (!fs::is_directory(state_directory, code)) return {};
  return mount_tmpfs(state_directory, "mode=0555,size=4k");
}

// What root could undo the mounts with, or reach around them through another process' root.
Status give_up_capabilities() {
  for (const int capability : {CAP_SYS_ADMIN, CAP_SYS_PTRACE})
    if (::prctl(PR_CAPBSET_DROP, capability) != 0)
      return errno_error("drop a capability for", "the command");
  return {};
}

Status lock_tenant_root() {
  if (::mount(nullptr, kTenantRoot, nullptr,
              MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
    return errno_error("make read-only", kTenantRoot);
  return {};
}

}  // namespace

Status enter_tenant_namespace(const TenantView& view) {
  std::error_code code;
  const fs::path here = fs::current_path(code);
  if (const Status alone = unshare_mounts(); !alone) return alone;
  Result<Sources> sources = take_sources(view);
  if (!sources) return sources.error();
  if (const Status made = make_tenant_root(); !made) return made;
  if (const Status shown = show_library(*sources); !shown) return shown;
  if (const Status shown = show_driver(view, *sources); !shown) return shown;
  if (const Status made = make_directory(kTenantLease); !made) return made;
  if (const Status shown = place(std::move(sources->lease), kTenantLease); !shown) return shown;
  if (const Status shown = show_loader_files(*sources); !shown) return shown;
  if (const Status hidden = hide_state(view.state_directory); !hidden) return hidden;
  if (const Status locked = lock_tenant_root(); !locked) return locked;
  if (const Status given_up = give_up_capabilities(); !given_up) return given_up;
  // The old working directory still points below what was mounted over it.
  if (::chdir(here.c_str()) != 0) return errno_error("go back to", here);
  return {};
}

Status tenant_namespace_possible() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make", "a pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", "a trial");
  if (child == 0) {
    Status tried = unshare_mounts();
    if (tried) tried = make_tenant_root();
    if (tried) tried = give_up_capabilities();
    if (tried)
      tried = [] {
        const auto tree = take("/proc");
        return tree ? Status() : tree.error();
      }();
    if (!tried)
      (void)!::write(writer.get(), tried.error().message.data(), tried.error().message.size());
    ::_exit(tried ? 0 : 1);
  }
  writer.reset();
  std::array<char, 512> message{};
  const ssize_t length = ::read(reader.get(), message.data(), message.size());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return {};
  return Error{Errc::kDenied,
               std::string(message.data(), length > 0 ? static_cast<std::size_t>(length) : 0)};
}

}  // namespace aliquot::cli
