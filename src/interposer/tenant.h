// Tenant: this process's attachment to its lease: which slot, which limits, which drivers.
//
// Attaches at the first call that needs it, bounded in time; refuses once, with one line on
// stderr. A process that was forked, however, is a new process to the broker: the words that say
// "attached" live in a page that the kernel wipes at fork (MADV_WIPEONFORK), so that a child finds
// itself unattached at its next call without a handler, also after a raw clone. The mappings stay
// with the child until it attaches anew. What is charged is the account's business.
//
// Any thread, before main, after fork, with every descriptor closed. Allocates nothing from malloc.
#pragma once

#include <atomic>
#include <cstdint>

#include "interposer/short_lock.h"
#include "wire/control.h"
#include "wire/quota.h"

namespace aliquot::interposer {

class Tenant {
 public:
  static constexpr unsigned kAttachPatienceMs = 3000;
  // `forget` runs in a forked child before it attaches anew: what is held is the parent's.
  using Forget = void (*)();
  explicit constexpr Tenant(Forget forget) : forget_(forget) {}

  // Whether the lease stands; attaches if this process has not tried yet.
  bool attached() { return stands() || attach(); }
  bool stands() const {
    const Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr && page->standing.load(std::memory_order_acquire) == kAttached;
  }
  // A refusal is remembered; this forgets it, so that the next call asks again (cuInit does).
  void ask_again_if_refused();
  // One line that says why the lease was refused; empty if it was not.
  const char* refusal() const { return refusal_; }

  // From here on only while attached.
  const wire::Grant& grant() const { return *attachment_.grant; }
  const wire::LedgerView& ledger() const { return attachment_.ledger; }
  unsigned gpu_count() const { return grant().gpu_count; }
  // Its memory is counted and nothing is refused.
  bool is_observed() const {
    return grant().enforcement.load(std::memory_order_relaxed) ==
           static_cast<std::uint32_t>(wire::Enforcement::kObserve);
  }
  unsigned slot() const { return static_cast<unsigned>(attachment_.slot); }
  wire::Quota quota(unsigned gpu) const { return {attachment_.ledger, grant(), gpu}; }
  // The broker has subtracted every process that is dead by now; false if nobody answered.
  bool settle() const;

  // Tests: stands on memory of the caller's instead of a broker's answer.
  void adopt(const wire::Attachment& attachment);
  void leave();

 private:
  enum Standing : std::uint32_t { kUnknown, kAttached, kRefused };
  // Zero in a forked child: unattached, unlocked.
  struct Page {
    std::atomic<std::uint32_t> standing;
    ShortLock lock;
  };
  static Page* make_page();

  Page& page();
  bool attach();
  bool attach_locked(Page& page);
  void say_refused();

  const Forget forget_;
  std::atomic<Page*> page_{nullptr};
  wire::Attachment attachment_;
  std::uint64_t connection_cookie_ = 0;  // tells our connection from a descriptor of that number
  char refusal_[320] = {};
};

// The one of this process. Constant-initialised: there before any constructor.
extern constinit Tenant process_tenant;  // NOLINT: constant-initialised
inline Tenant& tenant() { return process_tenant; }

}  // namespace aliquot::interposer
