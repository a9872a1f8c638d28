// The files of one lease: grant, ledger, table, and the directory the tenant sees.
//
//   DIRECTORY/grant    written by the broker; tenants get a descriptor that cannot be written
//   through DIRECTORY/ledger   shared; fully allocated, so that a full file system is an error now,
//   not later DIRECTORY/table    the broker's memory DIRECTORY/tenant/  what the tenant is shown;
//   holds nothing but `socket`
//
// Made beside its place and renamed, so a directory that exists is whole. One thread.
#pragma once

#include <cstddef>
#include <filesystem>

#include "broker/sigbus_guard.h"
#include "broker/table.h"
#include "common/result.h"
#include "common/unique_fd.h"
#include "wire/grant.h"
#include "wire/ledger.h"

namespace aliquot::broker {

// A file mapped shared and writable; unmapped by its owner's end.
class MappedFile {
 public:
  // A new file, every byte of it allocated and zero.
  static Result<MappedFile> create(const std::filesystem::path& path, std::size_t bytes);
  // An existing one; an error when it is shorter.
  static Result<MappedFile> open(const std::filesystem::path& path, std::size_t bytes);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // Whether somebody shortened the file and an access fell into the hole.
  bool was_truncated() const { return guard_.tripped(); }

 private:
  static Result<MappedFile> map(UniqueFd fd, const std::filesystem::path& path, std::size_t bytes);

  UniqueFd fd_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  SigbusGuard guard_;
};

class LeaseFiles {
 public:
  // Makes DIRECTORY with a grant, table and ledger of that geometry, headers filled in, all else 0.
  // `fill` writes the rest before the directory gets its name.
  template <class Fill>
  static Result<LeaseFiles> create(const std::filesystem::path& directory, unsigned gpus,
                                   unsigned slots, std::uint64_t lease_id, Fill fill) {
    auto files = prepare(directory, gpus, slots, lease_id);
    if (!files) return files;
    fill(*files);
    if (const Status done = files->publish(); !done) return done.error();
    return files;
  }

  // What an earlier broker left; an error when it is damaged, of another layout or another boot.
  static Result<LeaseFiles> open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path tenant_directory() const { return directory_ / "tenant"; }
  wire::Grant& grant() const { return *static_cast<wire::Grant*>(grant_.data()); }
  Table& table() const { return *static_cast<Table*>(table_.data()); }
  wire::LedgerView ledger() const { return {ledger_.data(), gpus_, slots_}; }

  // For SCM_RIGHTS.
  int grant_fd() const { return tenant_grant_.get(); }
  int ledger_fd() const { return ledger_.fd(); }
  // True: the grant's descriptor goes through a read-only mount, which holds against root in the
  // tenant's container. False: the kernel refused that; it holds against other users only.
  bool is_guarded() const { return guarded_; }
  bool was_truncated() const { return ledger_.was_truncated(); }

 private:
  static Result<LeaseFiles> prepare(const std::filesystem::path& directory, unsigned gpus,
                                    unsigned slots, std::uint64_t lease_id);
  Status publish();
  Status open_tenant_grant();

  std::filesystem::path directory_;
  std::filesystem::path building_;
  MappedFile grant_, table_, ledger_;
  UniqueFd tenant_grant_;
  unsigned gpus_ = 0, slots_ = 0;
  bool guarded_ = false;
};

}  // namespace aliquot::broker
