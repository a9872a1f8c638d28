#include "driver_abi/nvml_table.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "driver_abi/nvml_functions.h"

namespace aliquot::driver_abi {
namespace {

TEST(NvmlTable, FindsEveryRowByItsSymbol) {
  for (std::size_t i = 0; i < kNvmlCount; ++i)
    EXPECT_EQ(nvml_row(kNvmlEntries[i].symbol), static_cast<Nvml>(i)) << kNvmlEntries[i].symbol;
}

TEST(NvmlTable, KnowsNoSymbolThatOnlyLooksLikeOne) {
  EXPECT_EQ(nvml_row(""), std::nullopt);
  EXPECT_EQ(nvml_row("nvmlDeviceGetCount_v9"), std::nullopt);
  EXPECT_EQ(nvml_row("nvmlDevice"), std::nullopt);
}

TEST(NvmlTable, ASymbolComesAndGoesWithTheVersion) {
  EXPECT_TRUE(entry(Nvml::nvmlDeviceGetPowerMode).in_version(11080));
  EXPECT_FALSE(entry(Nvml::nvmlDeviceGetPowerMode).in_version(13000));
  EXPECT_FALSE(entry(Nvml::nvmlDeviceGetHostname_v1).in_version(13000));
  EXPECT_TRUE(entry(Nvml::nvmlDeviceGetHostname_v1).in_version(13050));
}

TEST(NvmlTable, OnlyTheErrorTextIsNotAResult) {
  EXPECT_TRUE((std::is_same_v<NvmlResult<Nvml::nvmlErrorString>, const char*>));
  EXPECT_TRUE((std::is_same_v<NvmlResult<Nvml::nvmlInit_v2>, nvmlReturn_t>));
}

TEST(NvmlTable, AVersionedStructSaysSizeAndVersion) {
  EXPECT_EQ(nvml_struct_version<nvmlMemory_v2_t>(2), 0x02000028u);
  EXPECT_EQ(nvml_struct_version<nvmlProcessDetailList_t>(1), 0x01000018u);
}

}  // namespace
}  // namespace aliquot::driver_abi
