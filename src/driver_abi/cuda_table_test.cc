#include "driver_abi/cuda_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace aliquot::driver_abi {

// So that a failed expectation names the symbol.
static void PrintTo(const ProcAddressAnswer& answer, std::ostream* out) {
  if (answer.status == ProcAddressStatus::kFound)
    *out << entry(answer.id).symbol;
  else
    *out << (answer.status == ProcAddressStatus::kUnknown ? "unknown" : "version too low");
}

namespace {

constexpr int kDriver130 = 13000;

ProcAddressAnswer found(Cuda id) { return {ProcAddressStatus::kFound, id}; }
const ProcAddressAnswer kUnknown{ProcAddressStatus::kUnknown, Cuda::kCount};
const ProcAddressAnswer kTooLow{ProcAddressStatus::kVersionTooLow, Cuda::kCount};

TEST(CudaTable, FindsEveryRowByItsSymbol) {
  for (std::size_t i = 0; i < kCudaCount; ++i)
    EXPECT_EQ(cuda_row(kCudaEntries[i].symbol), static_cast<Cuda>(i)) << kCudaEntries[i].symbol;
}

TEST(CudaTable, KnowsNoSymbolThatOnlyLooksLikeOne) {
  EXPECT_EQ(cuda_row(""), std::nullopt);
  EXPECT_EQ(cuda_row("cu"), std::nullopt);
  EXPECT_EQ(cuda_row("cuMemAlloc_v3"), std::nullopt);
  EXPECT_EQ(cuda_row("cudnnCreate"), std::nullopt);
  EXPECT_EQ(cuda_row("cublasCreate_v2"), std::nullopt);
  EXPECT_EQ(cuda_row("zzz"), std::nullopt);
}

TEST(CudaTable, SymbolsEndInAZeroByteForDlsym) {
  for (const Entry& row : kCudaEntries) EXPECT_EQ(row.symbol.data()[row.symbol.size()], 0);
}

TEST(CudaTable, TheNewestVersionUpToTheAskedOneAnswers) {
  EXPECT_EQ(symbol_for({"cuMemAlloc", 2000}, kDriver130), found(Cuda::cuMemAlloc));
  EXPECT_EQ(symbol_for({"cuMemAlloc", 3010}, kDriver130), found(Cuda::cuMemAlloc));
  EXPECT_EQ(symbol_for({"cuMemAlloc", 3020}, kDriver130), found(Cuda::cuMemAlloc_v2));
  EXPECT_EQ(symbol_for({"cuMemAlloc", 99000}, kDriver130), found(Cuda::cuMemAlloc_v2));
}

TEST(CudaTable, APerThreadRequestGetsThePerThreadForm) {
  EXPECT_EQ(symbol_for({"cuMemcpyHtoD", 7000, true}, kDriver130),
            found(Cuda::cuMemcpyHtoD_v2_ptds));
  EXPECT_EQ(symbol_for({"cuLaunchKernel", 7000, true}, kDriver130),
            found(Cuda::cuLaunchKernel_ptsz));
}

TEST(CudaTable, APerThreadRequestFallsBackToTheOrdinaryFunction) {
  EXPECT_EQ(symbol_for({"cuMemAlloc", 12000, true}, kDriver130), found(Cuda::cuMemAlloc_v2));
  EXPECT_EQ(symbol_for({"cuLaunchKernel", 6050, true}, kDriver130), found(Cuda::cuLaunchKernel));
}

TEST(CudaTable, AnOldVersionOfAPerThreadCallKeepsItsOwnSignature) {
  EXPECT_EQ(symbol_for({"cuStreamBeginCapture", 10000, true}, kDriver130),
            found(Cuda::cuStreamBeginCapture_ptsz));
  EXPECT_EQ(symbol_for({"cuStreamBeginCapture", 10010, true}, kDriver130),
            found(Cuda::cuStreamBeginCapture_v2_ptsz));
}

TEST(CudaTable, AVersionBelowTheFirstIsNotAnUnknownName) {
  EXPECT_EQ(symbol_for({"cuMemCreate", 10010}, kDriver130), kTooLow);
  EXPECT_EQ(symbol_for({"cuInit", 0}, kDriver130), kTooLow);
}

TEST(CudaTable, NamesYoungerThanTheDriverDoNotExist) {
  EXPECT_EQ(symbol_for({"cuGraphGetId", 13010}, kDriver130), kUnknown);
  EXPECT_EQ(symbol_for({"cuGraphGetId", 13010}, 13010), found(Cuda::cuGraphGetId));
  EXPECT_EQ(symbol_for({"cuMemcpyBatchAsync", 13000}, 12080), found(Cuda::cuMemcpyBatchAsync));
  EXPECT_EQ(symbol_for({"cuMemcpyBatchAsync", 13000}, 12060), kUnknown);
}

TEST(CudaTable, OnlyBaseNamesAreAnswered) {
  EXPECT_EQ(symbol_for({"", 0}, kDriver130), kUnknown);  // the runtime's first probe
  EXPECT_EQ(symbol_for({"cuMemAlloc_v2", 12000}, kDriver130), kUnknown);
  EXPECT_EQ(symbol_for({"cuMem", 12000}, kDriver130), kUnknown);
  EXPECT_EQ(symbol_for({"cudnnCreate", 12000}, kDriver130), kUnknown);
}

TEST(CudaTable, ItAnswersForItself) {
  EXPECT_EQ(symbol_for({"cuGetProcAddress", 11030}, kDriver130), found(Cuda::cuGetProcAddress));
  EXPECT_EQ(symbol_for({"cuGetProcAddress", 12000}, kDriver130), found(Cuda::cuGetProcAddress_v2));
}

}  // namespace
}  // namespace aliquot::driver_abi
