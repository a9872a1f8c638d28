#include "broker/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::broker {
namespace {

using model::kGiB;
using testing::HasSubstr;

model::MemoryQuantity gib(std::uint64_t n) {
  return {model::MemoryQuantity::Kind::kBytes, n * kGiB};
}

std::vector<ProbedGpu> machine(std::vector<std::uint64_t> free_gib) {
  std::vector<ProbedGpu> gpus;
  for (std::size_t i = 0; i < free_gib.size(); ++i) {
    ProbedGpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.total_bytes = 40 * kGiB;
    gpu.free_bytes = free_gib[i] * kGiB;
    gpus.push_back(gpu);
  }
  return gpus;
}

struct Machine {
  explicit Machine(std::vector<std::uint64_t> free_gib)
      : gpus(machine(std::move(free_gib))), promised(gpus.size()) {}
  Result<std::vector<LeaseGpu>> admit(std::vector<ShareRequest> shares) const {
    LeaseRequest request;
    request.shares = std::move(shares);
    return broker::admit(request, rooms(gpus, promised), gpus, least_room);
  }
  std::vector<ProbedGpu> gpus;
  std::vector<GpuPromises> promised;
};

TEST(Admission, TakesTheFittingGpuWithLeastRoom) {
  Machine m({40, 10, 3});
  const auto got = m.admit({{"", gib(4), 0}});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->front().index, 1u);
  EXPECT_EQ(got->front().limit_bytes, 4 * kGiB);
}

TEST(Admission, CountsPromisesAndOthersUseOnce) {
  Machine m({30});  // 10 GiB are in use: 6 by our lease, 4 by somebody else
  m.promised[0].shares = {{16 * kGiB, 6 * kGiB, 3000}};
  const auto row = rooms(m.gpus, m.promised).front();
  EXPECT_EQ(row.room_bytes, 20 * kGiB);  // 40 - 16 - 4
  EXPECT_EQ(row.room_cores, 7000u);
}

TEST(Admission, RefusalNamesWhatIsFreeWhere) {
  Machine m({40, 5});
  m.promised[0].shares = {{38 * kGiB, 0, 0}};
  const auto got = m.admit({{"0", gib(4), 0}});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kExhausted);
  EXPECT_THAT(got.error().message, HasSubstr("4GiB asked, gpu 0 2GiB left"));
  EXPECT_THAT(got.error().message, HasSubstr("38GiB promised to 1 lease"));
  EXPECT_THAT(got.error().message, HasSubstr("free for new shares: gpu 0 2GiB, gpu 1 5GiB"));
}

TEST(Admission, AGpuThatDoesNotAnswerIsSaidToAndIsNotFull) {
  Machine m({0, 5});
  m.gpus[0].trouble = "NVML has not answered about it yet";
  const auto got = m.admit({{"0", gib(4), 0}});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("NVML has not answered about it yet; try again"));
  EXPECT_THAT(got.error().message, testing::Not(HasSubstr("0B left")));
  EXPECT_EQ(m.admit({{"", gib(4), 0}}).value().front().index, 1u);
  const auto none = m.admit({{"", gib(8), 0}});
  EXPECT_EQ(none.error().code, Errc::kExhausted) << "it may have room the next time";
  EXPECT_THAT(none.error().message, HasSubstr("gpu 0 not known, gpu 1 5GiB"));
}

TEST(Admission, ASecondLeaseOfTheWholeGpuIsRefused) {
  Machine m({40});
  m.promised[0].shares = {{40 * kGiB, 0, 0}};
  EXPECT_EQ(m.admit({{"", {}, 0}}).error().code, Errc::kExhausted);
}

TEST(Admission, GuaranteesAboveAWholeGpuAreRefused) {
  Machine m({40});
  m.promised[0].shares = {{kGiB, 0, 8000}};
  EXPECT_TRUE(m.admit({{"", gib(1), 2000}}));
  EXPECT_EQ(m.admit({{"", gib(1), 2001}}).error().code, Errc::kExhausted);
}

TEST(Admission, WhatCanNeverFitIsToldApart) {
  Machine m({40, 40});
  EXPECT_EQ(m.admit({{"0", gib(41), 0}}).error().code, Errc::kInvalid);
  EXPECT_EQ(m.admit({{"", gib(41), 0}}).error().code, Errc::kInvalid);
  EXPECT_EQ(m.admit({{"", gib(1), 0}, {"", gib(1), 0}, {"", gib(1), 0}}).error().code,
            Errc::kInvalid);
  EXPECT_EQ(m.admit({{"7", gib(1), 0}}).error().code, Errc::kNotFound);
  EXPECT_EQ(m.admit({{"1", gib(1), 0}, {"GPU-1", gib(1), 0}}).error().code, Errc::kInvalid);
  EXPECT_EQ(m.admit({}).error().code, Errc::kInvalid);
}

TEST(Admission, SeveralGpusComeInPciOrderWithTheirOwnShares) {
  Machine m({40, 40, 40});
  const auto got = m.admit({{"2", gib(1), 100}, {"GPU-0", gib(4), 200}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->at(0).index, 0u);
  EXPECT_EQ(got->at(0).limit_bytes, 4 * kGiB);
  EXPECT_EQ(got->at(1).index, 2u);
  EXPECT_EQ(got->at(1).cores, 100u);
}

TEST(Admission, TheInjectedChooserDecidesAmongThoseThatFit) {
  Machine m({40, 1, 40, 40});
  LeaseRequest request;
  request.shares = {{"", gib(4), 0}, {"", gib(4), 0}};
  const auto last = [](const std::vector<RoomRow>& fitting, std::size_t) {
    return std::vector<std::size_t>{fitting.size() - 1, fitting.size() - 2};
  };
  const auto got = admit(request, rooms(m.gpus, m.promised), m.gpus, last);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->at(0).index, 2u);
  EXPECT_EQ(got->at(1).index, 3u);
}

TEST(Admission, PercentagesAreOfTheGpuTaken) {
  Machine m({40});
  const auto got = m.admit({{"", {model::MemoryQuantity::Kind::kPercent, 2500}, 0}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->front().limit_bytes, 10 * kGiB);
}

TEST(Admission, AShareMayShrinkBelowUseAndGrowIntoRoomOnly) {
  Machine m({40});
  m.promised[0].shares = {{10 * kGiB, 8 * kGiB, 0}, {25 * kGiB, 0, 0}};
  m.gpus[0].free_bytes = 32 * kGiB;
  const auto row = rooms(m.gpus, m.promised).front();
  EXPECT_TRUE(admit_change(row, 10 * kGiB, kGiB));
  EXPECT_TRUE(admit_change(row, 10 * kGiB, 15 * kGiB));
  EXPECT_EQ(admit_change(row, 10 * kGiB, 15 * kGiB + 1).error().code, Errc::kExhausted);
  EXPECT_EQ(admit_change(row, 10 * kGiB, 41 * kGiB).error().code, Errc::kInvalid);
  EXPECT_EQ(admit_change(row, 10 * kGiB, 0).error().code, Errc::kInvalid);
}

}  // namespace
}  // namespace aliquot::broker
