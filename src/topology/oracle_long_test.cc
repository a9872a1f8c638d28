// Ten thousand graphs of 9 to 16 GPUs against the subset programme.
#include "support/topology_oracle_runs.h"

namespace aliquot::topology::oracle {
namespace {

TEST(SearchLong, EqualsASubsetProgrammeOnTenThousandLargeGraphs) { compare_subsets(10'000, 11); }

}  // namespace
}  // namespace aliquot::topology::oracle
