// Control messages between a tenant process and its lease's broker, and the tenant's side of them.
//
// One SEQPACKET socket per lease, `socket` in the lease's directory; fixed-size messages of this
// machine's byte order; docs/formats/control.md. A connection asks one thing. The connection of a
// successful attach stays open, close-on-exec, as a hint: its end tells the broker to look whether
// the image is gone. It is never proof: closing it changes nothing for a living image.
//
// The functions need libc alone (no symbol above GLIBC_2.17, no allocation, no exceptions), keep
// errno, and block at most about `patience_ms`. Any thread; not from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/grant.h"
#include "wire/ledger.h"

namespace aliquot::wire {

inline constexpr std::uint32_t kControlMagic = 0x31434c41;  // "ALC1" in memory order
inline constexpr std::uint32_t kControlVersion = 1;

enum class Ask : std::uint32_t {
  kAttach = 1,  // a slot, the grant and the ledger
  kSettle = 2,  // answer after every death known by now has been subtracted
  kAnswer = 3,  // to a challenge: `nonce` repeated
};

enum class Answer : std::uint32_t {
  kDone = 1,
  kChallenge = 2,   // repeat `nonce` in a kAnswer on this connection
  kFull = 3,        // every slot is taken
  kNotOfLease = 4,  // the process is not of the lease's run
  kEnded = 5,       // the lease has ended or is poisoned
  kNoVersion = 6,   // this broker does not speak the request's version
  kBusy = 7,        // try again
};

struct TenantRequest {
  std::uint32_t magic = kControlMagic;
  std::uint32_t version = kControlVersion;
  Ask ask = Ask::kAttach;
  std::uint32_t reserved0 = 0;
  std::uint64_t image = 0;  // image_id() of the program that asks
  std::uint64_t nonce = 0;
  std::uint64_t reserved1[4] = {};
};

// With kDone to kAttach come two descriptors (SCM_RIGHTS): the grant (read-only), the ledger.
struct BrokerReply {
  std::uint32_t magic = kControlMagic;
  std::uint32_t version = kControlVersion;
  Answer answer = Answer::kDone;
  std::int32_t slot = -1;
  std::uint64_t nonce = 0;
  std::uint64_t reserved0 = 0;
  char reason[224] = {};  // for a refusal: one clear line, ends with 0
};

static_assert(sizeof(TenantRequest) == 64 && offsetof(TenantRequest, image) == 16);
static_assert(sizeof(BrokerReply) == 256 && offsetof(BrokerReply, reason) == 32);

// Tells the images of one process apart (it changes with exec): a hash of AT_RANDOM.
std::uint64_t image_id();

struct Attachment {
  int slot = -1;
  int connection = -1;  // close-on-exec; keep it open as long as the attachment stands
  const Grant* grant = nullptr;
  LedgerView ledger;
  std::size_t ledger_bytes = 0;
};

enum class AttachResult {
  kAttached,
  kNoBroker,  // nobody answered within the patience
  kRefused,   // the broker said why
  kBadGrant,  // what came back is no grant or ledger that this library understands
};

// Attaches the calling process to the lease at `directory`. Tries again until the patience is over
// while no broker answers. `reason` gets one line on every result but kAttached; may be null.
AttachResult attach(const char* directory, unsigned patience_ms, Attachment& attachment,
                    char* reason, std::size_t reason_size);

// Undoes the mappings and closes the connection. After a fork the child calls this before it
// attaches anew: it closes the child's copies only.
void forget(Attachment& attachment);

// Asks the broker to subtract what is dead by now. False: nobody answered within the patience.
// A reserve that was refused asks this once, then tries again.
bool settle(const char* directory, unsigned patience_ms);

}  // namespace aliquot::wire
