#include "simdriver/machine_json.h"

#include <gtest/gtest.h>

#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

using format::Json;

Json a100() {
  const auto made =
      make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
  return made ? to_json(*made) : Json();
}

Result<MachineSpec> read(const Json& json) {
  return machine_from_json(json, "lab.json", [](auto name) -> Result<GpuModel> {
    return Error{Errc::kNotFound, "no model " + std::string(name)};
  });
}

std::string fault(const Json& json) {
  const auto machine = read(json);
  EXPECT_FALSE(machine);
  return machine ? "" : machine.error().message;
}

// `json` with the member of its GPU 1 replaced.
Json with_gpu1(const char* key, Json value) {
  Json json = a100();
  Json::Array gpus = *json.find("gpus")->if_array();
  gpus[1].set(key, std::move(value));
  return json.set("gpus", Json(gpus));
}

Json with_model(const char* key, Json value) {
  Json json = a100();
  Json::Array models = *json.find("models")->if_array();
  models[0].set(key, std::move(value));
  return json.set("models", Json(models));
}

TEST(MachineJson, NamesTheKeyThatNobodyKnows) {
  EXPECT_EQ(fault(a100().set("gpuz", 1)), "lab.json: gpuz: unknown key");
  EXPECT_EQ(fault(with_gpu1("colour", "red")), "lab.json: gpus[1].colour: unknown key");
  EXPECT_EQ(fault(with_model("memory", Json().set("l2", 1))),
            "lab.json: models[0].memory.nvml_total_bytes: missing");
}

TEST(MachineJson, RefusesWordsThatMeanNothing) {
  EXPECT_EQ(fault(with_gpu1("uuid", "GPU-1")), "lab.json: gpus[1].uuid: not valid: GPU-1");
  EXPECT_EQ(fault(with_gpu1("pci", "07:00.0")), "lab.json: gpus[1].pci: not valid: 07:00.0");
  EXPECT_EQ(fault(with_gpu1("model", "a1000")), "lab.json: gpus[1].model: no model a1000");
  EXPECT_EQ(fault(with_model("architecture", "kepler")),
            "lab.json: models[0].architecture: not valid: kepler");
  EXPECT_EQ(fault(a100().set("cuda", "9.0")),
            "lab.json: cuda: no driver 9.0; there are 11.8, 12.4, 12.9, 13.0");
  EXPECT_EQ(fault(a100().set("pcie", Json().append("X PXX").append("PXX X"))),
            "lab.json: pcie: not valid: X PXX");
}

TEST(MachineJson, RefusesMachinesThatCannotBe) {
  EXPECT_EQ(fault(with_gpu1("numa", 2)), "lab.json: gpus[1].numa: no such node");
  EXPECT_EQ(fault(with_gpu1("minor", 0)), "lab.json: gpus[1].minor: another GPU has it");
  EXPECT_EQ(fault(with_gpu1("pci", "0000:01:00.0")),
            "lab.json: gpus[1].pci: GPUs stand in ascending PCI order");
  EXPECT_EQ(fault(a100().set("nvlinks", Json().append("X 13").append("13 X"))),
            "lab.json: nvlinks: gpus[0] has only 12 links");
  EXPECT_EQ(fault(a100().set("nvlinks", Json().append("X 12").append("11 X"))),
            "lab.json: nvlinks: expected the same both ways");
  EXPECT_EQ(fault(a100().set("pcie", Json().append("X SYS"))),
            "lab.json: pcie: expected one row a GPU");
  EXPECT_EQ(fault(a100().set("gpus", Json::array())), "lab.json: gpus: expected 1 to 64 of them");
  EXPECT_EQ(fault(a100().set("numa", Json().append("0-x").append("1"))),
            "lab.json: numa: CPU list \"0-x\": expected numbers as in 0-23,48-71");
}

TEST(MachineJson, KeepsTheSpeedOfTheMachinesTime) {
  EXPECT_EQ(read(a100())->time_scale_micro, kRealTime);
  EXPECT_EQ(read(a100().set("time_scale_micro", 100'000))->time_scale_micro, 100'000u);
  const std::string expected = "lab.json: time_scale_micro: expected 1000 to 1000000 (real time)";
  EXPECT_EQ(fault(a100().set("time_scale_micro", 999)), expected);
  EXPECT_EQ(fault(a100().set("time_scale_micro", 1'000'001)), expected);
}

TEST(MachineJson, KeepsWhatItWasToldOfKernels) {
  const Json told = a100().set("kernels", Json().set("gemm", 350'000).set("_Z3addPf", 1));
  ASSERT_TRUE(read(told));
  EXPECT_EQ(read(told)->kernel_block_ns,
            (decltype(MachineSpec::kernel_block_ns){{"_Z3addPf", 1}, {"gemm", 350'000}}));
  EXPECT_EQ(*read(to_json(*read(told))), *read(told));
  EXPECT_EQ(fault(a100().set("kernels", Json().set("gemm", 0))),
            "lab.json: kernels: gemm: expected 1 to 3600000000000 nanoseconds");
  EXPECT_EQ(fault(a100().set("kernels", 1)),
            "lab.json: kernels: expected an object, not a whole number");
}

TEST(MachineJson, RefusesModelsThatCannotBe) {
  const auto made =
      make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
  ASSERT_TRUE(made);
  GpuModel model = made->models[0];
  model.memory.driver_total_bytes = model.memory.nvml_total_bytes;
  EXPECT_EQ(model_from_json(to_json(model), "m.json").error().message,
            "m.json: memory: driver_total_bytes must be below nvml_total_bytes");
  model = made->models[0];
  model.nvlink.links = 33;
  EXPECT_EQ(model_from_json(to_json(model), "m.json").error().message,
            "m.json: nvlink: at most 32 links");
}

}  // namespace
}  // namespace aliquot::simdriver
