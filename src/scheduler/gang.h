// Gangs: requests that start together or not at all, near each other in the tree of domains.
//
// A gang goes into the lowest domain that holds all of it, and of several into the fullest; inside,
// it begins in the sub-domain with most room, so that it touches few. A gang that asks no level
// fills holes anywhere. Where the policy minds links between nodes it touches few nodes, one if
// that can be, and has its GPUs chosen together (gang_nodes.h). Two gangs can never hold half of
// what the other needs: each is one transaction.
//
// The scheduler's loop only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "topology/domains.h"

namespace aliquot::scheduler {

using topology::DomainTree;

// The tree that the nodes' own paths make; its hosts are NodeIds. Not changed with the snapshot.
DomainTree domain_tree_of(const Snapshot& snapshot);

struct GangMember {
  model::Request request;
  int count = 1;
};

struct Gang {
  std::string name;
  std::vector<GangMember> members;
  // Levels of DomainTree. Required: all in one domain of this level, or not at all. Preferred: the
  // search begins there and widens. With neither it may lie anywhere.
  std::optional<std::size_t> required_level;
  std::optional<std::size_t> preferred_level;
};

struct GangDecision {
  Outcome outcome = Outcome::kNever;
  std::vector<Decision> members;  // all of them where placed, else none; in the order of the gang
  std::size_t domain = 0;         // index in the tree: the domain that holds it
  std::string why;                // not placed: what is in the way
};

// Reserves all members, or leaves the snapshot exactly as it was. Invalid where a request makes no
// sense. `allowed`, where given, says for each node whether the gang may use it.
Result<GangDecision> place_gang(Scheduler& scheduler, const DomainTree& tree, const Gang& gang,
                                const std::vector<bool>* allowed = nullptr);

}  // namespace aliquot::scheduler
