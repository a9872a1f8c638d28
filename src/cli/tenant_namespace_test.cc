#include "cli/tenant_namespace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/files.h"
#include "common/unique_fd.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;

class TenantNamespace : public testing::Test {
 protected:
  void SetUp() override {
    if (const Status possible = tenant_namespace_possible(); !possible)
      GTEST_SKIP() << "this kernel refuses: " << possible.error().message;
    std::string name = (fs::temp_directory_path() / "aliquot-ns-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    for (const char* sub : {"state/leases/a", "state/sim/m/lib", "real"})
      fs::create_directories(dir_ / sub);
    ASSERT_TRUE(write_file_atomically(dir_ / "state/leases/a/grant", "granted"));
    for (const char* file : {"state/sim/m/machine.json", "state/sim/m/socket",
                             "state/sim/m/lib/libcuda.so.1", "state/sim/m/lib/libnvidia-ml.so.1"})
      ASSERT_TRUE(write_file_atomically(dir_ / file, "simulated"));
    for (const char* file : {"real/libcuda.so.1", "real/libnvidia-ml.so.1"})
      ASSERT_TRUE(write_file_atomically(dir_ / file, "the real one"));
    view_ = {.lease = dir_ / "state/leases/a",
             .library = PROBE_LIBRARY,
             .state_directory = dir_ / "state",
             .libcuda = dir_ / "state/sim/m/lib/libcuda.so.1",
             .libnvidia_ml = dir_ / "state/sim/m/lib/libnvidia-ml.so.1",
             .simulated_machine = dir_ / "state/sim/m",
             .loader_cache = dir_ / "state/ld.so.cache"};
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
  }

  // Runs `check` inside the namespace; its answer is the exit status, 100 when it was not entered.
  template <typename Check>
  int inside(Check check) {
    const pid_t child = fork();
    if (child == 0) {
      if (const Status entered = enter_tenant_namespace(view_); !entered) {
        std::fprintf(stderr, "%s\n", entered.error().message.c_str());
        _exit(100);
      }
      _exit(check());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
  }

  fs::path dir_;
  TenantView view_;
};

// A new program, so that the loader reads the cache afresh.
constexpr const char* kLoadByName =
    "python3 -c 'import ctypes; print(ctypes.CDLL(\"%s\").aliquot_probe())' | grep -qx 42";

int shell_loads(const char* name) {
  char command[256];
  std::snprintf(command, sizeof command, kLoadByName, name);
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("LD_PRELOAD");
  return std::system(command) == 0 ? 0 : 1;  // NOLINT: a shell is what tenants have
}

TEST_F(TenantNamespace, EveryDriverNameIsOurLibraryWhateverTheVariablesSay) {
  for (const char* name : {"libcuda.so", "libcuda.so.1", "libnvidia-ml.so", "libnvidia-ml.so.1"})
    EXPECT_EQ(inside([&] { return shell_loads(name); }), 0) << name;
}

TEST_F(TenantNamespace, TheLoaderCacheIsMadeOnceAndKept) {
  ASSERT_EQ(inside([] { return 0; }), 0);
  EXPECT_TRUE(fs::exists(dir_ / "state/ld.so.cache"));
  EXPECT_EQ(inside([] { return shell_loads("libcuda.so.1"); }), 0);
}

TEST_F(TenantNamespace, TheLeaseIsReadOnlyEvenForRoot) {
  EXPECT_EQ(inside([] {
              const fs::path grant = fs::path(kTenantLease) / "grant";
              if (*read_file(grant) != "granted") return 1;
              if (UniqueFd(open(grant.c_str(), O_RDWR | O_CLOEXEC))) return 2;
              return errno == EROFS ? 0 : 3;
            }),
            0);
}

TEST_F(TenantNamespace, OtherLeasesAndTheMachinesOwnLibrariesAreHidden) {
  EXPECT_EQ(inside([&] { return fs::is_empty(dir_ / "state") ? 0 : 1; }), 0);
  EXPECT_EQ(inside([] { return fs::exists("/run/aliquot/driver/machine.json") ? 0 : 1; }), 0);
}

TEST_F(TenantNamespace, NoSearchPathFindsTheDriverBehindByItsName) {
  EXPECT_EQ(inside([] {
              if (*read_file(kTenantLibcuda) != "simulated") return 1;
              for (const auto& entry : fs::recursive_directory_iterator(kTenantDriver))
                if (entry.path().filename().string().starts_with("lib")) return 2;
              return 0;
            }),
            0);
}

TEST_F(TenantNamespace, ARealDriverFileIsReplacedWhereItLiesAndKeptBeside) {
  view_.simulated_machine.clear();
  view_.libcuda = dir_ / "real/libcuda.so.1";
  view_.libnvidia_ml = dir_ / "real/libnvidia-ml.so.1";
  EXPECT_EQ(inside([&] {
              if (*read_file(kTenantLibcuda) != "the real one") return 1;
              return *read_file(dir_ / "real/libcuda.so.1") == *read_file(PROBE_LIBRARY) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(*read_file(dir_ / "real/libcuda.so.1"), "the real one");  // outside nothing changed
}

TEST_F(TenantNamespace, NothingCanBeAddedToTheTenantsTree) {
  EXPECT_EQ(inside([] {
              return UniqueFd(open("/run/aliquot/lib/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) ? 1
                                                                                                : 0;
            }),
            0);
}

TEST_F(TenantNamespace, AMissingLeaseIsAnErrorThatNamesIt) {
  view_.lease = dir_ / "state/leases/gone";
  EXPECT_EQ(inside([] { return 0; }), 100);
}

}  // namespace
}  // namespace aliquot::cli
