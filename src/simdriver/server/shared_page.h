// A structure in a memory file that one side writes and another process reads. Owned by one
// object; the mapping lives as long as it does.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <type_traits>
#include <utility>

#include "common/files.h"
#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::simdriver {

enum class PageWriter {
  kUs,      // sealed: nobody else can ever map it writable, whatever the descriptor's mode
  kClient,  // sealed against changes of size only
};

template <typename T>
class SharedPage {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  SharedPage() = default;
  SharedPage(SharedPage&& other) noexcept
      : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}
  SharedPage& operator=(SharedPage&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(page_, other.page_);
    return *this;
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage() {
    if (page_ != nullptr) munmap(page_, sizeof(T));
  }

  static Result<SharedPage> make(const char* name, PageWriter writer) {
    SharedPage made;
    made.fd_.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!made.fd_) return errno_error("memfd_create", name);
    if (ftruncate(made.fd_.get(), sizeof(T)) != 0) return errno_error("ftruncate", name);
    void* at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, made.fd_.get(), 0);
    if (at == MAP_FAILED) return errno_error("mmap", name);
    made.page_ = static_cast<T*>(at);
    // The seal comes after our own mapping: FUTURE_WRITE lets that one stay writable.
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (writer == PageWriter::kUs) seals |= F_SEAL_FUTURE_WRITE;
    if (fcntl(made.fd_.get(), F_ADD_SEALS, seals) != 0) return errno_error("seal", name);
    return made;
  }

  int fd() const { return fd_.get(); }
  T* operator->() const { return page_; }
  T& operator*() const { return *page_; }
  explicit operator bool() const { return page_ != nullptr; }

 private:
  UniqueFd fd_;
  T* page_ = nullptr;
};

}  // namespace aliquot::simdriver
