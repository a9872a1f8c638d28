#include "interposer/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "interposer/process.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18  // Linux 4.14; headers of glibc 2.17 do not name it
#endif
#ifndef SO_COOKIE
#define SO_COOKIE 57  // Linux 4.6
#endif

namespace aliquot::interposer {
namespace {

constexpr char kNamespaceLease[] = "/run/aliquot/lease";
// A refusal asks the broker to settle its dead; without a broker that must not take for ever.
constexpr unsigned kSettlePatienceMs = 1000;
constexpr std::size_t kPageBytes = 4096;

// In namespace mode the lease is where no variable can move it.
const char* lease_directory() {
  if (access(kNamespaceLease, F_OK) == 0) return kNamespaceLease;
  const char* named = getenv("ALIQUOT_LEASE");
  return named != nullptr && named[0] != 0 ? named : nullptr;
}

// What the kernel calls a socket, never the same twice; 0: not a socket.
std::uint64_t cookie_of(int descriptor) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0) return cookie;
  return errno == ENOPROTOOPT ? 1 : 0;  // before Linux 4.6
}

}  // namespace

constinit Tenant process_tenant(forget_process);

Tenant::Page* Tenant::make_page() {
  void* memory =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, kPageBytes, MADV_WIPEONFORK);
  return static_cast<Page*>(memory);
}

Tenant::Page& Tenant::page() {
  Page* page = page_.load(std::memory_order_acquire);
  if (page != nullptr) return *page;
  static constinit Page unwiped{};  // no memory even for a page: then forks go unnoticed
  Page* mine = make_page();
  if (mine == nullptr) mine = &unwiped;
  if (page_.compare_exchange_strong(page, mine, std::memory_order_acq_rel)) return *mine;
  if (mine != &unwiped) munmap(mine, kPageBytes);
  return *page;
}

bool Tenant::attach() {
  Page& page = this->page();
  if (page.standing.load(std::memory_order_acquire) == kRefused) return false;
  const Holding holding(page.lock);
  switch (page.standing.load(std::memory_order_acquire)) {
    case kAttached:
      return true;
    case kRefused:
      return false;
    default:
      return attach_locked(page);
  }
}

bool Tenant::attach_locked(Page& page) {
  if (attachment_.grant != nullptr) {  // inherited through fork
    // A program that closes all its descriptors may have opened others since.
    if (cookie_of(attachment_.connection) != connection_cookie_) attachment_.connection = -1;
    wire::forget(attachment_);
    forget_();
  }
  const char* directory = lease_directory();
  bool attached = false;
  if (directory == nullptr) {
    strcpy(refusal_, "it has no lease: start it with `aliquot run`");
  } else {
    attached = wire::attach(directory, kAttachPatienceMs, attachment_, refusal_, sizeof refusal_) ==
               wire::AttachResult::kAttached;
  }
  if (attached) {
    refusal_[0] = 0;
    connection_cookie_ = cookie_of(attachment_.connection);
  }
  page.standing.store(attached ? kAttached : kRefused, std::memory_order_release);
  if (!attached) say_refused();
  return attached;
}

void Tenant::ask_again_if_refused() {
  std::uint32_t refused = kRefused;
  page().standing.compare_exchange_strong(refused, kUnknown);
}

bool Tenant::settle() const {
  const char* directory = lease_directory();
  return directory != nullptr && wire::settle(directory, kSettlePatienceMs);
}

void Tenant::adopt(const wire::Attachment& attachment) {
  attachment_ = attachment;
  page().standing.store(kAttached, std::memory_order_release);
}

void Tenant::leave() {
  attachment_ = {};
  page().standing.store(kUnknown, std::memory_order_release);
}

// One write, so that the lines of several processes do not mix.
void Tenant::say_refused() {
  const char* quiet = getenv("ALIQUOT_QUIET");
  if (quiet != nullptr && strcmp(quiet, "1") == 0) return;
  char head[] = "aliquot: this program gets no GPU: ";
  char tail[] = "\n";
  const iovec parts[] = {
      {head, sizeof head - 1}, {refusal_, strnlen(refusal_, sizeof refusal_)}, {tail, 1}};
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 3);
}

}  // namespace aliquot::interposer
