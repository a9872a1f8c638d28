// Ten thousand random machines: nobody waits for ever. Simulated.
#include "replay/gate_programs_fixture.h"

namespace aliquot::replay {
namespace {

TEST(GatePrograms, TenThousandRandomMachinesNeverStop) {
  for (std::uint64_t seed = 1'001; seed <= 11'000; ++seed) {
    run_random_machine(seed);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace aliquot::replay
