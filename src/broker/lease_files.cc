#include "broker/lease_files.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/files.h"

namespace aliquot::broker {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<MappedFile> MappedFile::map(UniqueFd fd, const fs::path& path, std::size_t bytes) {
  MappedFile file;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return errno_error("map", path);
  file.fd_ = std::move(fd);
  file.data_ = data;
  file.bytes_ = bytes;
  auto guard = SigbusGuard::watch(data, bytes);
  if (!guard) return guard.error();
  file.guard_ = std::move(*guard);
  return file;
}

Result<MappedFile> MappedFile::create(const fs::path& path, std::size_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error("make", path);
  int rc = 0;
  do {
    rc = fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  // A file system without fallocate: pages come on first touch, as the kernel has them.
  if (rc != 0 && errno == EOPNOTSUPP) rc = ftruncate(fd.get(), static_cast<off_t>(bytes));
  if (rc != 0) {
    Error error = errno_error("make", path);
    if (error.code == Errc::kExhausted)
      error.message += " (it needs " + std::to_string(bytes >> 10) +
                       " KiB; make room in the state directory's file system, or ask for fewer "
                       "process slots)";
    return error;
  }
  return map(std::move(fd), path, bytes);
}

Result<MappedFile> MappedFile::open(const fs::path& path, std::size_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return errno_error("open", path);
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return errno_error("look at", path);
  if (static_cast<std::size_t>(st.st_size) < bytes)
    return Error{Errc::kInvalid, "open " + path.string() + ": it was truncated"};
  return map(std::move(fd), path, bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) munmap(data_, bytes_);
  fd_ = std::move(other.fd_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  guard_ = std::move(other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<LeaseFiles> LeaseFiles::prepare(const fs::path& directory, unsigned gpus, unsigned slots,
                                       std::uint64_t lease_id) {
  LeaseFiles files;
  files.directory_ = directory;
  files.building_ = directory.parent_path() / ("." + directory.filename().string() + ".new");
  files.gpus_ = gpus;
  files.slots_ = slots;
  std::error_code ignored;
  fs::remove_all(files.building_, ignored);
  if (const Status made = make_directories(files.building_ / "tenant", 0755); !made)
    return made.error();
  auto grant = MappedFile::create(files.building_ / "grant", sizeof(wire::Grant));
  if (!grant) return grant.error();
  auto table = MappedFile::create(files.building_ / "table", sizeof(Table));
  if (!table) return table.error();
  auto ledger =
      MappedFile::create(files.building_ / "ledger", wire::LedgerView::size_bytes(gpus, slots));
  if (!ledger) return ledger.error();
  files.grant_ = std::move(*grant);
  files.table_ = std::move(*table);
  files.ledger_ = std::move(*ledger);

  wire::Grant& g = files.grant();
  g.magic = wire::kGrantMagic;
  g.layout = wire::kGrantLayout;
  g.size_bytes = sizeof(wire::Grant);
  g.gpu_count = gpus;
  g.slot_count = slots;
  g.lease_id = lease_id;
  wire::LedgerHeader& header = files.ledger().header();
  header.magic = wire::kLedgerMagic;
  header.layout = wire::kLedgerLayout;
  header.gpu_count = gpus;
  header.slot_count = slots;
  header.lease_id = lease_id;
  Table& t = files.table();
  t.magic = kTableMagic;
  t.layout = kTableLayout;
  t.slot_count = slots;
  t.boot = boot_id();
  return files;
}

Status LeaseFiles::publish() {
  if (::rename(building_.c_str(), directory_.c_str()) != 0) return errno_error("make", directory_);
  return open_tenant_grant();
}

Result<LeaseFiles> LeaseFiles::open(const fs::path& directory) {
  LeaseFiles files;
  files.directory_ = directory;
  auto grant = MappedFile::open(directory / "grant", sizeof(wire::Grant));
  if (!grant) return grant.error();
  files.grant_ = std::move(*grant);
  auto table = MappedFile::open(directory / "table", sizeof(Table));
  if (!table) return table.error();
  files.table_ = std::move(*table);
  const wire::Grant& g = files.grant();
  const Table& t = files.table();
  if (!wire::is_valid(g) || t.magic != kTableMagic || t.layout != kTableLayout ||
      t.slot_count != g.slot_count)
    return Error{Errc::kInvalid, "adopt " + directory.string() + ": damaged or of another version"};
  if (!(t.boot == boot_id()))
    return Error{Errc::kInvalid, "adopt " + directory.string() + ": left by an earlier boot"};
  files.gpus_ = g.gpu_count;
  files.slots_ = g.slot_count;
  auto ledger = MappedFile::open(directory / "ledger",
                                 wire::LedgerView::size_bytes(files.gpus_, files.slots_));
  if (!ledger) return ledger.error();
  files.ledger_ = std::move(*ledger);
  if (const Status opened = files.open_tenant_grant(); !opened) return opened.error();
  return files;
}

// A descriptor of a file on a read-only mount stays read-only for whoever gets it, root or not:
// opening it anew through /proc/self/fd for writing is EROFS.
Status LeaseFiles::open_tenant_grant() {
  const UniqueFd tree(static_cast<int>(
      syscall(SYS_open_tree, AT_FDCWD, directory_.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (tree) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    if (syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) ==
        0) {
      tenant_grant_.reset(openat(tree.get(), "grant", O_RDONLY | O_CLOEXEC));
      guarded_ = static_cast<bool>(tenant_grant_);
    }
  }
  if (!guarded_) tenant_grant_.reset(::open((directory_ / "grant").c_str(), O_RDONLY | O_CLOEXEC));
  if (!tenant_grant_) return errno_error("open", directory_ / "grant");
  return {};
}

}  // namespace aliquot::broker
