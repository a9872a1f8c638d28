// Whatever is written, the reader answers; what it accepts makes a tree that holds every host once.
#include <cstdlib>

#include "topology/domains.h"
#include "topology/topology_conf.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace aliquot::topology;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto paths = parse_topology_conf(text, "fuzz");
  if (!paths || paths->size() > 10'000) return 0;
  const DomainTree tree = DomainTree::of(*paths);
  // Every domain but the root holds a part of its parent's hosts.
  if (tree.domains()[DomainTree::kRoot].hosts.size() != paths->size()) std::abort();
  for (const Domain& domain : tree.domains())
    if (domain.hosts.empty() != paths->empty()) std::abort();
  return 0;
}
