#include "simdriver/cuda/ptx.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace aliquot::simdriver {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

CodeImage image(const std::string& body) {
  const auto read = read_ptx(kHead + body);
  EXPECT_TRUE(read) << read.error().message;
  return read ? *read : CodeImage{};
}

std::string error(const std::string& text) {
  const auto read = read_ptx(text);
  return read ? "" : read.error().message;
}

TEST(Ptx, ReadsVersionAndTarget) {
  const CodeImage read = image("");
  EXPECT_EQ(read.ptx_version, 80);
  EXPECT_EQ(read.target, 80);
}

TEST(Ptx, LaysParametersOutByTheirAlignment) {
  const CodeImage read = image(R"(
.visible .entry k(
  .param .u8 a,           // one byte
  .param .u64 .ptr .global .align 16 b,
  .param .align 8 .b8 c[20],
  .param .f32 d
) { ret; })");
  ASSERT_EQ(read.kernels.size(), 1u);
  const std::vector<KernelParameter> want{{0, 1}, {8, 8}, {16, 20}, {36, 4}};
  EXPECT_EQ(read.kernels[0].parameters, want);
  EXPECT_EQ(read.kernels[0].parameter_bytes, 40u);
}

TEST(Ptx, CountsWhatAKernelNeeds) {
  const CodeImage read = image(R"(
.entry k() .maxntid 16, 8, 1 .minnctapersm 2
{
  .reg .pred %p<9>;
  .reg .b32 %r<41>;
  .reg .b64 %rd<11>;
  .shared .align 4 .b8 tile[1024];
  .shared .f32 more[4];
  .local .align 8 .b8 depot[24];
  { .reg .b32 t; mov.u32 t, 0; }
  ret;
})");
  ASSERT_EQ(read.kernels.size(), 1u);
  const KernelImage& kernel = read.kernels[0];
  EXPECT_EQ(kernel.max_threads, 128u);
  EXPECT_EQ(kernel.shared_bytes, 1040u);
  EXPECT_EQ(kernel.local_bytes, 24u);
  EXPECT_EQ(kernel.registers, 24u);  // 8 + (40 + 1 + 2 * 10) / 4, to eights
}

TEST(Ptx, GivesModuleSharedMemoryToTheKernelsThatUseIt) {
  const CodeImage read = image(R"(
.shared .align 4 .b8 tile[400];
.extern .shared .align 16 .b8 dynamic[];
.entry uses() { .reg .b32 %r<3>; mov.u32 %r1, tile; mov.u32 %r2, tile; mov.u32 %r1, dynamic; ret; }
.entry other() { ret; })");
  ASSERT_EQ(read.kernels.size(), 2u);
  EXPECT_EQ(read.kernels[0].shared_bytes, 400u);
  EXPECT_EQ(read.kernels[1].shared_bytes, 0u);
}

TEST(Ptx, ObeysALimitOnRegisters) {
  const CodeImage read = image(".entry k() { .reg .b32 %r<900>; ret; }\n.pragma \"maxnreg 38\";\n");
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.kernels[0].registers, 38u);
}

TEST(Ptx, ReadsVariablesAndTheirValues) {
  const CodeImage read = image(R"(
.visible .global .align 4 .u32 counter = 7;
.global .align 1 .b8 text[6] = {104, 105};
.const .align 4 .f32 half[2] = {0f3F000000, 0f00000000};
.extern .global .u32 elsewhere;
.visible .global .attribute(.managed) .align 8 .u64 shared_word;)");
  ASSERT_EQ(read.variables.size(), 4u);
  std::uint32_t counter = 0;
  std::memcpy(&counter, read.variables[0].initial.data(), 4);
  EXPECT_EQ(counter, 7u);
  EXPECT_EQ(read.variables[1].bytes, 6u);
  EXPECT_EQ(read.variables[1].initial.size(), 2u);
  float half = 0;
  std::memcpy(&half, read.variables[2].initial.data(), 4);
  EXPECT_EQ(half, 0.5f);
  EXPECT_EQ(read.constant_bytes, 8u);
  EXPECT_TRUE(read.variables[3].managed);
}

TEST(Ptx, PassesOverFunctionsAndDebugSections) {
  const CodeImage read = image(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
.func (.reg .b32 r) helper(.reg .b32 a) { mov.b32 r, a; ret; }
.file 1 "source.cu"
.visible .entry k() { .loc 1 2 3
  ret; }
.section .debug_str { .b8 1, 2 })");
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.kernels[0].name, "k");
}

TEST(Ptx, SaysWhereAnErrorIs) {
  EXPECT_NE(error("no ptx at all").find("Missing .version"), std::string::npos);
  EXPECT_NE(error(std::string(kHead) + ".entry k() {\n ret;").find("Missing '}'"),
            std::string::npos);
  EXPECT_NE(error(std::string(kHead) + "nonsense").find("line 4"), std::string::npos);
  EXPECT_NE(error(std::string(kHead) + ".entry k(.param .u64) {}").find("error"),
            std::string::npos);
  EXPECT_NE(error(".version 8.0\n"), "");
  EXPECT_NE(error(""), "");
}

TEST(Ptx, SurvivesEveryPrefixOfAModule) {
  const std::string whole = std::string(kHead) + R"(
.visible .entry k(.param .u64 a) .maxntid 1,2,3 { .reg .b32 %r<4>; .shared .b8 s[8]; ret; }
.global .align 4 .u32 x[4] = {1, 2, -3, 4};)";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    [[maybe_unused]] const auto read = read_ptx(whole.substr(0, size));
  }
  EXPECT_TRUE(read_ptx(whole));
}

}  // namespace
}  // namespace aliquot::simdriver
