#include "cli/smi_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace aliquot::cli {
namespace {

using testing::HasSubstr;

SmiMachine share() {
  SmiGpu gpu;
  gpu.gpu.uuid = "GPU-1";
  gpu.gpu.name = "NVIDIA A100-SXM4-80GB";
  gpu.gpu.bus_id = "00000000:07:00.0";
  gpu.gpu.compute_major = 8;
  gpu.state.memory = {4096ull << 20, 0, 1024ull << 20, 3072ull << 20};
  gpu.state.gpu_percent = 37;
  gpu.state.power_mw = 61'500;
  gpu.state.processes = {{getpid(), 512ull << 20, inventory::ProcessKind::kCompute}};
  return {{"580.65.06", "13.580.65.06", 13000}, "simulated machine lab", {gpu}};
}

TEST(SmiTable, ShowsTheShareWithinEightyColumns) {
  const std::string text = smi_table(share());
  EXPECT_THAT(text, HasSubstr("simulated machine lab: driver 580.65.06, CUDA 13.0"));
  EXPECT_THAT(text, HasSubstr("1024MiB  4096MiB   37%    62W"));
  EXPECT_THAT(text, HasSubstr("512MiB  smi_view_test"));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    EXPECT_LE(end - start, 80u) << text.substr(start, end - start);
}

TEST(SmiTable, AFigureTheGpuDoesNotHaveIsADash) {
  SmiMachine machine = share();
  machine.gpus[0].state.power_mw.reset();
  machine.gpus[0].state.processes.clear();
  EXPECT_THAT(smi_table(machine), HasSubstr("37%      -"));
  EXPECT_THAT(smi_table(machine), HasSubstr("no process uses a GPU"));
}

TEST(SmiList, NamesEveryGpu) {
  EXPECT_EQ(smi_list(share()), "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n");
}

TEST(SmiQuery, AnswersTheFieldsAskedForInTheirOrder) {
  EXPECT_EQ(*smi_query(share(), "index,memory.total, memory.used,utilization.gpu,power.draw", {}),
            "index, memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.draw [W]\n"
            "0, 4096 MiB, 1024 MiB, 37 %, 61.50 W\n");
  EXPECT_EQ(*smi_query(share(), "memory.free,fan.speed", {.header = false, .units = false}),
            "3072, [N/A]\n");
}

TEST(SmiQuery, AnUnknownFieldIsNamed) {
  EXPECT_THAT(smi_query(share(), "index,magic", {}).error().message, HasSubstr("\"magic\""));
}

TEST(SmiQuery, EveryFieldAnswersAndTheListIsSorted) {
  const auto fields = smi_fields();
  EXPECT_TRUE(std::ranges::is_sorted(fields));
  for (const std::string& field : fields) EXPECT_TRUE(smi_query(share(), field, {})) << field;
}

TEST(CsvFormat, KnowsItsWords) {
  EXPECT_FALSE(parse_csv_format("csv,noheader,nounits")->units);
  EXPECT_TRUE(parse_csv_format("csv, noheader")->units);
  EXPECT_FALSE(parse_csv_format("json"));
  EXPECT_FALSE(parse_csv_format("csv,none"));
}

TEST(SmiTable, ShowsHowItsTimeIsShared) {
  SmiMachine machine = share();
  EXPECT_THAT(smi_json(machine), HasSubstr("\"shares\": []"));
  broker::LeaseRow lease;
  lease.name = "train";
  lease.gpus.resize(1);
  lease.gpus[0].cores = 3000;
  machine.leases = {lease};
  EXPECT_THAT(smi_table(machine), HasSubstr("train    0    30%  burst   offline"));
  EXPECT_THAT(smi_json(machine), HasSubstr("\"lease\": \"train\""));
}

}  // namespace
}  // namespace aliquot::cli
