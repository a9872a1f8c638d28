// with_machine NODE [CUDA] -- COMMAND...: runs the command on a simulated machine made for it, as
// a program that knows nothing of simulations would run: the driver is found by LD_LIBRARY_PATH.
// The machine ends with the command, whose status is passed on.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace {

namespace simdriver = aliquot::simdriver;

int fail(const std::string& message) {
  std::fprintf(stderr, "with_machine: %s\n", message.c_str());
  return 125;
}

int run(char** command) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(command[0], command);
    _exit(fail(std::string("cannot run ") + command[0]));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 125;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  simdriver::MachineRequest request;
  int next = 1;
  if (next < argc) request.node = argv[next++];
  if (next < argc && std::string(argv[next]) != "--") request.cuda = argv[next++];
  if (next + 1 >= argc || std::string(argv[next++]) != "--")
    return fail("usage: with_machine NODE [CUDA] -- COMMAND...");
  request.name = "test-" + std::to_string(getpid());
  const auto directory = simdriver::simulator_directory();
  if (!directory) return fail(directory.error().message);
  const auto spec = simdriver::make_machine(request, *directory);
  if (!spec) return fail(spec.error().message);
  const auto machine = simdriver::start_machine(*spec, *directory);
  if (!machine) return fail(machine.error().message);
  setenv("LD_LIBRARY_PATH", machine->library_directory().c_str(), 1);
  setenv("ALIQUOT_TEST_MACHINE", machine->directory.c_str(), 1);
  const int status = run(argv + next);
  const auto stopped = simdriver::stop_machine(request.name);
  if (!stopped) return fail(stopped.error().message);
  return status;
}
