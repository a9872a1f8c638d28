// A machine that pretends CUDA 12.4: what came later is absent, whoever asks.
#include "driver_abi/cuda_table.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

[[maybe_unused]] const auto* const kMachine = machine_for_tests("h100x8", "12.4");

TEST(DriverVersions, SaysTheVersionThatItPretends) {
  int version = 0;
  EXPECT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDriverGetVersion)(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 12040);
}

TEST(DriverVersions, HasTheNamesOfItsVersionAndNoYoungerOnes) {
  int younger = 0;
  for (const auto& entry : driver_abi::kCudaEntries) {
    const bool there = dlsym(driver_handle(), entry.c_str()) != nullptr;
    EXPECT_EQ(there, entry.in_version(12040)) << entry.symbol;
    younger += there ? 0 : 1;
  }
  EXPECT_GT(younger, 40);
}

TEST(DriverVersions, AnswersLookUpsOfYoungerNamesAsUnknown) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuMemGetMemPool", &function, 13000, 0, &status),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuCtxGetDevice", &function, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, dlsym(driver_handle(), "cuCtxGetDevice"));
}

}  // namespace
}  // namespace aliquot::simdriver::test
