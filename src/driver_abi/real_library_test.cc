#include "driver_abi/real_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "driver_abi/cuda_functions.h"

namespace aliquot::driver_abi {
namespace {

// A library with two names of the CUDA table and one that is in no table (real_library_fixture.c).
const char* const kFixture = ALIQUOT_FIXTURE_PATH;

TEST(RealLibrary, FindsWhatIsExportedAndLeavesTheRestNull) {
  RealCuda real;
  ASSERT_EQ(real.load(kFixture, dlsym), nullptr);

  EXPECT_TRUE(real.loaded());
  EXPECT_EQ(function<Cuda::cuInit>(real)(7), 7);
  int version = 0;
  EXPECT_EQ(function<Cuda::cuDriverGetVersion>(real)(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(function<Cuda::cuMemAlloc_v2>(real), nullptr);
}

TEST(RealLibrary, LooksUpThroughTheCallersFunction) {
  static int calls = 0;
  RealCuda real;
  ASSERT_EQ(real.load(kFixture,
                      [](void* handle, const char* symbol) {
                        ++calls;
                        return dlsym(handle, symbol);
                      }),
            nullptr);
  EXPECT_EQ(calls, static_cast<int>(kCudaCount));
}

TEST(RealLibrary, RefusesARelativePath) {
  RealCuda real;
  EXPECT_THAT(real.load("libcuda.so.1", dlsym), testing::HasSubstr("absolute"));
  EXPECT_THAT(real.load(nullptr, dlsym), testing::HasSubstr("absolute"));
  EXPECT_FALSE(real.loaded());
}

TEST(RealLibrary, SaysWhichFileCannotBeOpened) {
  RealCuda real;
  EXPECT_THAT(real.load("/nowhere/libcuda.so.1", dlsym), testing::HasSubstr("/nowhere"));
  EXPECT_FALSE(real.loaded());
}

TEST(RealLibrary, RefusesALibraryOfAnotherKind) {
  RealNvml real;
  EXPECT_THAT(real.load(kFixture, dlsym), testing::HasSubstr("none of the known symbols"));
  EXPECT_FALSE(real.loaded());
  EXPECT_EQ(real.symbol(Nvml::nvmlInit_v2), nullptr);
}

}  // namespace
}  // namespace aliquot::driver_abi
