// One question to kubelet for all who want to know at the same time.
#include "node/shared_list.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace aliquot::node {
namespace {

// Refuses the first few questions, as kubelet does when it is asked too often.
struct BusyKubelet : PodResources {
  std::atomic<int> refuses{0}, asked{0};

  Result<KubeletBook> list(const std::vector<std::string>&) override {
    ++asked;
    if (refuses > 0) {
      --refuses;
      return Error{Errc::kExhausted, "rate limit"};
    }
    return KubeletBook{.held = {}, .pods = {{"default", "p"}}};
  }
  Result<std::vector<std::string>> allocatable(const std::string&) override {
    return std::vector<std::string>{};
  }
};

struct SharedListTest : ::testing::Test {
  BusyKubelet kubelet;
  MonotonicClock clock;
  SharedList list{kubelet, {"aliquot.dev/gpu"}, clock};
};

TEST_F(SharedListTest, AsksAgainAndCountsWhereKubeletPutsItOff) {
  kubelet.refuses = 2;
  const auto answer = list.fresh();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->book->pods.size(), 1u);
  EXPECT_EQ(kubelet.asked, 3);
  EXPECT_EQ(list.put_off(), 2u);
}

TEST_F(SharedListTest, ManyWhoAskTogetherAreFewQuestions) {
  constexpr int kMany = 50;
  kubelet.refuses = 1;  // so that the first question takes a while
  std::latch ready(kMany);
  std::atomic<int> answered{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kMany; ++i) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        if (list.fresh()) ++answered;
      });
    }
  }
  EXPECT_EQ(answered, kMany);
  EXPECT_LT(kubelet.asked, kMany / 2);
}

}  // namespace
}  // namespace aliquot::node
