// Random driver-API programs against the reference model: every result and every number agrees.
// ALIQUOT_PROGRAMS says how many (500), ALIQUOT_FIRST_PROGRAM with which seed to begin (1): a
// program that failed is run again by its seed.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

// Small, so that memory runs out often; and no kernel is late at its start, so that events tell
// how long it took and nothing else.
constexpr Bytes kTotal = 1u << 30;
constexpr Bytes kContext = 66u << 20;

[[maybe_unused]] const auto* const kMachine =
    simdriver::test::machine_for_tests("a100x2", "", [](simdriver::MachineSpec& machine) {
      simdriver::GpuModel& model = machine.models[0];
      model.memory.driver_total_bytes = kTotal;
      model.memory.nvml_total_bytes = kTotal + (64u << 20);
      model.memory.context_bytes = kContext;
      model.timing.start_ns = 0;
    });

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// In a process of its own; one in three has another process beside it.
int run_program(std::uint64_t seed) noexcept {
  Plan plan;
  plan.seed = seed;
  plan.total_bytes = kTotal;
  plan.context_bytes = kContext;
  int ends[2] = {-1, -1};
  pid_t peer = 0;
  if (seed % 3 == 0) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 1;
    peer = fork();
    if (peer == 0) {
      close(ends[0]);
      serve_as_peer(ends[1]);
    }
    close(ends[1]);
    plan.peer = ends[0];
    plan.peer_process = peer;
  }
  Program(plan).run();
  close(ends[0]);
  if (peer > 0) waitpid(peer, nullptr, 0);
  return 0;
}

TEST(RandomPrograms, AgreeWithTheReferenceModel) {
  const std::uint64_t first = number_from("ALIQUOT_FIRST_PROGRAM", 1);
  const std::uint64_t count = number_from("ALIQUOT_PROGRAMS", 500);
  const std::uint64_t before[] = {simdriver::test::free_bytes(0), simdriver::test::free_bytes(1)};
  simdriver::test::driver_handle();  // loaded once for all of them, used by none but them
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + count && failed < 3; ++seed) {
    const pid_t child = fork();
    if (child == 0) _exit(run_program(seed));
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "program " << seed;
    failed += status == 0 ? 0 : 1;
    // The next one begins with all of the machine's memory.
    for (unsigned gpu = 0; gpu < 2; ++gpu) {
      for (int i = 0; i < 5000 && simdriver::test::free_bytes(gpu) != before[gpu]; ++i) {
        usleep(200);
      }
      EXPECT_EQ(simdriver::test::free_bytes(gpu), before[gpu]) << "after program " << seed;
    }
  }
}

}  // namespace
}  // namespace aliquot::reference
