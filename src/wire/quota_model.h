// An exhaustive model of the quota protocol (quota.h), for tests: every interleaving of the single
// shared-memory accesses of threads, processes and the broker, with a kill of any process and of
// the broker possible before every step. Halves of head and mirror are read in steps of their own,
// so torn reads are covered. The memory model is sequential consistency: on x86 every shared write
// of a tenant is a locked instruction, so store buffers add nothing.
//
// After every step: used is the sum of what is held; every slot's bytes (mirror or head) are what
// its process holds; no reserve passes the limit in force; no refusal is false; a freed slot is
// empty. At rest: used is what the living hold. From every state every thread alone finishes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace aliquot::wire::model {

// Planted faults: the model must find each.
enum class Fault {
  kNone,
  kNoHelp,                 // a head is replaced by another slot's before its mirror is written
  kNoIdentityBeforeHelp,   // help without proving that the head is still the same
  kNoSequenceInMirror,     // mirrors are compared by bytes alone
  kSettledByBytesAlone,    // a mirror with the right bytes is taken for settled
  kLostHelpIsDone,         // who finds a mirror written by another does not look what was written
  kFreedBeforeSubtracted,  // the broker frees a slot, then subtracts
  kLimitWithoutBump,       // a new limit is stored and that is all
  kSeparateCounter,        // a shared counter and mirrors, without evidence in the counter
  kReclaimUnsettled,       // the broker subtracts what the mirror says, whoever the head names
};

enum class Do : std::uint8_t { kNothing, kReserve, kReserveFailing, kFreeLast };

struct Operation {
  Do what = Do::kNothing;
  std::uint8_t bytes = 0;
};

inline constexpr Operation reserve(std::uint8_t bytes) { return {Do::kReserve, bytes}; }
// The driver call after it may fail: then it is rolled back.
inline constexpr Operation reserve_failing(std::uint8_t bytes) {
  return {Do::kReserveFailing, bytes};
}
inline constexpr Operation free_last() { return {Do::kFreeLast, 0}; }

struct ThreadPlan {
  std::uint8_t process = 0;
  std::vector<Operation> operations;  // at most 4
};

struct Plan {
  std::string name;
  std::vector<ThreadPlan> threads;  // at most 3, of at most 3 processes
  std::uint8_t limit = 5;
  std::uint8_t lowered_to = 0;  // 0: the limit stays
  std::uint8_t kills = 0, broker_kills = 0, respawns = 0;
  bool check_alone = true;  // every thread alone finishes from every state
  Fault fault = Fault::kNone;
};

struct Report {
  std::size_t states = 0, transitions = 0, ends = 0;
  int longest_alone = 0;  // steps that a thread alone needed at most
  std::string violation;  // empty: none
};

Report explore(const Plan& plan);

// The study's configurations, and one of heads in a row. The one of three processes and one kill is
// for every run.
Plan three_processes_one_kill();
std::vector<Plan> plans_for_faults();  // every fault shows in one of them
std::vector<Plan> all_plans();         // 80 million states in all

}  // namespace aliquot::wire::model
