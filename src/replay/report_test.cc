#include "replay/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "replay/report_svg.h"

namespace aliquot::replay {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

// One node of two GPUs and one without; a waits for nobody, b for a, c fits nowhere.
class ReplayReport : public testing::Test {
 protected:
  void SetUp() override {
    const Result<Trace> trace = parse_trace(
        "name,arrival_s,duration_s,gpus,gpu_milli,gpu_memory_mib,cpu_milli,memory_mib,gpu_models\n"
        "a,0,10,2,1000,0,0,0,\nb,4,10,1,500,0,0,0,\nc<&>,5,10,3,1000,0,0,0,\n",
        "t.csv");
    ASSERT_TRUE(trace) << trace.error().message;
    trace_ = *trace;
    cluster_.name = "two.csv";
    cluster_.nodes.resize(2);
    cluster_.nodes[0].name = "with-gpus";
    cluster_.nodes[0].gpu_count = 2;
    cluster_.nodes[0].gpu.name = "A100";
    cluster_.nodes[1].name = "without";
    cluster_.assumptions = {"Of this cluster nothing is known."};
    for (const char* policy : {"binpack", "fgd"}) {
      TimelinePlan plan;
      plan.policy = policy;
      Result<Timeline> timeline = run_timeline(cluster_, trace_, plan);
      ASSERT_TRUE(timeline) << timeline.error().message;
      timelines_.push_back(*std::move(timeline));
    }
  }
  Report report() const { return {trace_, cluster_, timelines_, TimeModel::kAsListed, {}}; }

  Trace trace_;
  Cluster cluster_;
  std::vector<Timeline> timelines_;
};

TEST_F(ReplayReport, SumsUpWhatBecameOfTheJobs) {
  const Summary s = summary_of(trace_, timelines_[0]);
  EXPECT_EQ(s.policy, "binpack");
  EXPECT_EQ(s.jobs, 3);
  EXPECT_EQ(s.placed, 1);
  EXPECT_EQ(s.delayed, 1);
  EXPECT_EQ(s.waiting, 0);
  EXPECT_EQ(s.refused, 1);
  EXPECT_DOUBLE_EQ(s.mean_used, 100);
  EXPECT_DOUBLE_EQ(s.mean_wait_s, 3);
  EXPECT_EQ(s.p95_wait_s, 6);
  EXPECT_EQ(s.longest_wait_s, 6);
  EXPECT_EQ(s.took_s, 20);
  EXPECT_EQ(cluster_text(cluster_), "2 GPUs on 2 nodes: 2 A100");
}

TEST_F(ReplayReport, WritesALineAPolicyAndSample) {
  const std::string csv = report_csv(report());
  EXPECT_THAT(csv,
              StartsWith("policy,time_s,used_milli,busy_milli,total_milli,"
                         "fragmented_milli,running,waiting\nbinpack,0,2000,2000,2000,0,1,0\n"));
  EXPECT_EQ(count(csv, "\nfgd,"), timelines_[1].samples.size());
  EXPECT_THAT(csv, HasSubstr("\nbinpack,4,2000,2000,2000,0,1,1\n"));
  EXPECT_THAT(csv, HasSubstr("\nbinpack,20,0,0,2000,"));
}

TEST_F(ReplayReport, TellsEveryJobsFateInJson) {
  const auto json = format::parse_json(report_json(report()).dump(), "out");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json->find("simulated"), format::Json(true));
  ASSERT_EQ(json->find("runs")->if_array()->size(), 2u);
  const format::Json& run = (*json->find("runs")->if_array())[0];
  const auto& jobs = *run.find("jobs")->if_array();
  ASSERT_EQ(jobs.size(), 3u);
  const format::Json& pod = (*jobs[0].find("pods")->if_array())[0];
  EXPECT_EQ(*pod.find("node"), format::Json("with-gpus"));
  EXPECT_EQ(*pod.find("gpus"), format::Json(format::Json::Array{0, 1}));
  EXPECT_EQ(*jobs[1].find("fate"), format::Json("delayed"));
  EXPECT_EQ(*jobs[1].find("start_s"), format::Json(10));
  EXPECT_EQ(*jobs[2].find("fate"), format::Json("never"));
  EXPECT_EQ(jobs[2].find("pods"), nullptr);
  EXPECT_NE(jobs[2].find("reason"), nullptr);
  EXPECT_EQ(*run.find("summary")->find("never"), format::Json(1));
}

TEST_F(ReplayReport, ShowsThePoliciesSideBySideOnAPageThatNeedsNothingElse) {
  const std::string page = report_html(report());
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("simulated"));
  EXPECT_THAT(page, HasSubstr("replayed in virtual time"));
  EXPECT_THAT(page, HasSubstr("Of this cluster nothing is known."));
  // Five plots with a line a policy, and a map a policy.
  EXPECT_EQ(count(page, "<svg "), 7u);
  EXPECT_EQ(count(page, "</svg>"), 7u);
  EXPECT_EQ(count(page, "class=\"line\""), 10u);
  for (const char* loads : {"src=", "href=", "<script", "url(", "@import", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(loads)));
}

TEST_F(ReplayReport, StatesWhatItsTimesAssume) {
  Report modelled = report();
  EXPECT_THAT(report_html(modelled), HasSubstr("A job runs for its duration wherever"));
  modelled.time = TimeModel::kModelled;
  const std::string page = report_html(modelled);
  EXPECT_THAT(page, HasSubstr("sends 2 (k - 1) / k x bytes"));
  EXPECT_THAT(page, Not(HasSubstr("A job runs for its duration wherever")));
}

TEST_F(ReplayReport, AnswersTheThreeQuestionsInJsonAndOnThePage) {
  auto answered = answer_questions(cluster_, trace_, {"binpack", 42, 557});
  ASSERT_TRUE(answered) << answered.error().message;
  const Report answers{trace_, cluster_, answered->timelines, TimeModel::kModelled,
                       answered->answers};
  const auto json = format::parse_json(report_json(answers).dump(), "out");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->find("runs")->if_array()->size(), 4u);
  EXPECT_EQ(json->find("answers")->find("sentences")->if_array()->size(), 3u);
  // b holds a half of a GPU; on a whole one it would use 50 %.
  EXPECT_EQ(*json->find("answers")->find("use")->find("whole_gpus")->find("jobs"), format::Json(2));
  const std::string page = report_html(answers);
  EXPECT_THAT(page, HasSubstr("<h2>Answers</h2>"));
  EXPECT_THAT(page, HasSubstr("use under 30 % of what they hold; those waste"));
  EXPECT_THAT(page, HasSubstr("557 MB a second of compute"));
}

TEST_F(ReplayReport, EscapesWhatTheTraceCallsItself) {
  const std::string page = report_html(report());
  EXPECT_THAT(page, HasSubstr("c&lt;&amp;&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("c<&>")));
}

TEST(ReportSvg, DrawsValuesThatHoldUntilTheNext) {
  const std::string plot = line_plot("p", {{"x", {{0, 0}, {10, 50}, {20, 100}}}}, 100);
  EXPECT_THAT(plot, HasSubstr("d=\"M56 204H452V116H848V28\""));
}

TEST(ReportSvg, TakesNodesTogetherWhereThereAreTooManyToShow) {
  std::vector<model::NodeSpec> nodes(130);
  Timeline timeline;
  timeline.samples.resize(1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].name = "n" + std::to_string(i);
    nodes[i].gpu_count = i == 0 ? 0 : 8;
    timeline.samples[0].node_percent.push_back(i == 0 ? kNoGpu : 100);
  }
  const std::string map = heat_map("m", timeline, nodes);
  EXPECT_EQ(count(map, "<g>"), 64u);
  EXPECT_THAT(map, HasSubstr("<title>n1 to n3</title>"));
  EXPECT_THAT(map, Not(HasSubstr("n0 ")));
  // All full: every cell of the darkest shade.
  EXPECT_EQ(count(map, "<path fill=\"#074787\""), 64u);
}

TEST(ReportSvg, SaysTimesShortly) {
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(90), "90 s");
  EXPECT_EQ(time_text(1800), "30 min");
  EXPECT_EQ(time_text(9000), "2.5 h");
  EXPECT_EQ(time_text(864000), "10 d");
}

}  // namespace
}  // namespace aliquot::replay
