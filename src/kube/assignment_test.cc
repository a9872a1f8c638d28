#include "kube/assignment.h"

#include <gtest/gtest.h>

namespace aliquot::kube {
namespace {

Pod pod_with(std::string_view annotation, std::string_view text) {
  Pod pod;
  pod.annotations.emplace(annotation, text);
  return pod;
}

Container container_named(std::string_view name) {
  Container container;
  container.name = name;
  return container;
}

model::MemoryQuantity bytes(std::uint64_t value) {
  return {model::MemoryQuantity::Kind::kBytes, value};
}

TEST(Assignment, ReadsWhatItWrites) {
  const Assignment wrote{{{"main", {{"GPU-1", 4 * model::kGiB, 3000}, {"GPU-2", 1, 0}}},
                          {"loader", {{"GPU-1", model::kGiB, 10'000}}}}};
  const Result<Assignment> read = parse_assignment(assignment_text(wrote));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, wrote);
  ASSERT_NE(read->of("loader"), nullptr);
  EXPECT_EQ(read->of("loader")->gpus.size(), 1u);
  EXPECT_EQ(read->of("other"), nullptr);
}

TEST(Assignment, IsOneLineAsDocumented) {
  EXPECT_EQ(assignment_text({{{"main", {{"GPU-1", 4 * model::kGiB, 3000}}}}}),
            R"({"version":1,"containers":[{"name":"main","gpus":[)"
            R"({"uuid":"GPU-1","memory_bytes":4294967296,"cores":3000}]}]})");
}

struct Refusal {
  std::string_view text;
  std::string_view message;
};

TEST(Assignment, IsRefusedWithThePlaceOfTheFault) {
  const Refusal refusals[] = {
      {"{", "aliquot.dev/assignment:1"},
      {R"({"version": 2, "containers": []})", "version"},
      {R"({"containers": []})", "version"},
      {R"({"version": 1, "containers": [], "extra": 1})", "extra"},
      {R"({"version": 1, "containers": [{"name": "a", "gpus": []}]})", "gpus: is empty"},
      {R"({"version": 1, "containers": [{"name": "", "gpus": [{"uuid": "u", "memory_bytes": 1}]}]})",
       "name"},
      {R"({"version": 1, "containers": [{"name": "a", "gpus": [{"uuid": "u", "memory_bytes": 0}]}]})",
       "memory_bytes: out of range"},
      {R"({"version": 1, "containers": [{"name": "a",
           "gpus": [{"uuid": "u", "memory_bytes": 4398046511104}]}]})",
       "memory_bytes: out of range"},
      {R"({"version": 1, "containers": [{"name": "a",
           "gpus": [{"uuid": "u", "memory_bytes": 1, "cores": 10001}]}]})",
       "cores"},
      {R"({"version": 1, "containers": [{"name": "a",
           "gpus": [{"uuid": "u", "memory_bytes": 1}, {"uuid": "u", "memory_bytes": 1}]}]})",
       "a: u twice"},
      {R"({"version": 1, "containers": [{"name": "a", "gpus": [{"uuid": "u", "memory_bytes": 1}]},
                                        {"name": "a", "gpus": [{"uuid": "v", "memory_bytes": 1}]}]})",
       "container a twice"}};
  for (const Refusal& refusal : refusals) {
    const Result<Assignment> read = parse_assignment(refusal.text);
    ASSERT_FALSE(read) << refusal.text;
    EXPECT_NE(read.error().message.find(refusal.message), std::string::npos)
        << read.error().message << " lacks " << refusal.message;
    EXPECT_EQ(read.error().message.find("aliquot.dev/assignment"), 0u) << read.error().message;
  }
}

TEST(Assignment, OfMoreThan64KiBIsRefusedUnread) {
  EXPECT_FALSE(parse_assignment(std::string(70'000, ' ') + assignment_text({})));
}

TEST(Ask, OfOneAmountIsForEveryContainer) {
  const Pod pod = pod_with(kMemoryAnnotation, "4GiB");
  const Result<ShareAsk> ask = ask_of(pod, container_named("main"));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->memory, bytes(4 * model::kGiB));
  EXPECT_FALSE(ask->cores);
  EXPECT_FALSE(ask->whole_gpu());
}

TEST(Ask, ForOneContainerComesBeforeTheAskForAll) {
  const Pod pod = pod_with(kMemoryAnnotation, "4GiB, loader = 1GiB");
  EXPECT_EQ(ask_of(pod, container_named("loader"))->memory, bytes(model::kGiB));
  EXPECT_EQ(ask_of(pod, container_named("main"))->memory, bytes(4 * model::kGiB));
  const Pod only = pod_with(kCoresAnnotation, "loader=12.5%");
  EXPECT_EQ(ask_of(only, container_named("loader"))->cores, 1250u);
  EXPECT_TRUE(ask_of(only, container_named("main"))->whole_gpu());
}

TEST(Ask, WithoutAWordIsAWholeGpu) {
  const Result<ShareAsk> ask = ask_of(Pod(), container_named("main"));
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->whole_gpu());
}

TEST(Ask, TakesFromTheLimitsWhatNoAnnotationSaid) {
  Container container = container_named("main");
  container.limits = {{std::string(kMemoryResource), "4096"}, {std::string(kCoresResource), "30"}};
  const Result<ShareAsk> by_limits = ask_of(Pod(), container);
  ASSERT_TRUE(by_limits);
  EXPECT_EQ(by_limits->memory, bytes(4 * model::kGiB));
  EXPECT_EQ(by_limits->cores, 3000u);
  const Result<ShareAsk> both = ask_of(pod_with(kMemoryAnnotation, "2GiB"), container);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->memory, bytes(2 * model::kGiB));
  EXPECT_EQ(both->cores, 3000u);
}

TEST(Ask, ThatCannotBeMeantIsRefused) {
  for (const std::string_view wrong : {"4096", "", "4GiB,", "4GiB,2GiB", "main=1GiB,main=2GiB",
                                       "=1GiB", "main=", "main=1GiB=2", "-1GiB"})
    EXPECT_FALSE(ask_of(pod_with(kMemoryAnnotation, wrong), container_named("main"))) << wrong;
  // A bare number, only where an administrator says what it counts.
  const Pod bare = pod_with(kMemoryAnnotation, "4");
  EXPECT_EQ(ask_of(bare, container_named("main"), {1'000'000'000})->memory, bytes(4'000'000'000));
  EXPECT_FALSE(ask_of(bare, container_named("main")));
  EXPECT_FALSE(
      ask_of(pod_with(kMemoryAnnotation, "9999999999999"), container_named("main"), {1u << 30}));
  EXPECT_EQ(
      share_change(pod_with(kShareAnnotation, "memory=2"), container_named("main"), {1u << 30})
          ->value()
          .memory,
      bytes(2ull << 30));
  const Result<ShareAsk> ask = ask_of(pod_with(kCoresAnnotation, "101"), container_named("main"));
  ASSERT_FALSE(ask);
  EXPECT_EQ(ask.error().message.find("aliquot.dev/cores: '101': "), 0u) << ask.error().message;
  Container container = container_named("main");
  for (const std::string_view wrong : {"0", "4Gi", "99999999999", "x"}) {
    container.limits = {{std::string(kMemoryResource), std::string(wrong)}};
    EXPECT_FALSE(ask_of(Pod(), container)) << wrong;
  }
}

TEST(ShareChange, IsAbsentWhereThePodSaysNone) {
  const auto none = share_change(Pod(), container_named("main"));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  const auto other =
      share_change(pod_with(kShareAnnotation, "side.cores=50"), container_named("main"));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->has_value());
}

TEST(ShareChange, NamesWhatItChangesAndForWhom) {
  const Pod pod =
      pod_with(kShareAnnotation, "memory=8GiB, cores=50,weight=2,class=online,side.memory=1GiB");
  const auto main = share_change(pod, container_named("main"));
  ASSERT_TRUE(main) << main.error().message;
  EXPECT_EQ(**main, (ShareAsk{bytes(8 * model::kGiB), 5000, 2, Class::kOnline}));
  const auto side = share_change(pod, container_named("side"));
  ASSERT_TRUE(side);
  EXPECT_EQ((*side)->memory, bytes(model::kGiB));
  EXPECT_EQ((*side)->cores, 5000u);
}

TEST(ShareChange, ThatCannotBeMeantIsRefusedWholly) {
  for (const std::string_view wrong :
       {"", "memory", "memory=", "memory=8", "colour=red", "weight=0", "weight=1001", "class=best",
        "memory=8GiB,memory=9GiB", "cores=50,", "side.colour=red", "a.b.memory=1GiB"})
    EXPECT_FALSE(share_change(pod_with(kShareAnnotation, wrong), container_named("main"))) << wrong;
}

}  // namespace
}  // namespace aliquot::kube
