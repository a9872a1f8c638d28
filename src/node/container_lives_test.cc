// Many containers come and go: nothing of them stays. LIVES in the environment: how many, else 200.
#include <cstdlib>
#include <fstream>

#include "node/testing/binding_fixture.h"

namespace aliquot::node {
namespace {

using ContainerLives = BindingFixture;

// Of this process, which holds kubelet's twin and the daemon's half.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

TEST_F(ContainerLives, LeaveNoLeaseNoFileAndNoMemory) {
  const char* asked = std::getenv("LIVES");
  const int lives = asked != nullptr ? std::atoi(asked) : 200;
  std::uint64_t early = 0;
  for (int i = 0; i < lives; ++i) {
    const std::string name = "p" + std::to_string(i);
    pods.set({pod_of(name, "uid-" + std::to_string(i), {container("main")})});
    const auto ids = admit(name, "main");
    ASSERT_TRUE(kubelet->pre_start(kResource, ids)) << name;
    kubelet->remove("default", name);
    pods.set({});
    ASSERT_TRUE(binding->reconcile());
    ASSERT_TRUE(binding->bound().empty()) << name;
    if (i == lives / 4) early = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), early + (2u << 20)) << "after " << early << " early on";
  EXPECT_TRUE(std::filesystem::is_empty(root / "cdi"));
  EXPECT_TRUE(std::filesystem::is_empty(root / "state/pods"));
  EXPECT_TRUE(std::filesystem::is_empty(root / "state/leases"));
}

}  // namespace
}  // namespace aliquot::node
