#include "inventory/doctor.h"

#include <gmock/gmock.h>

#include <set>

namespace aliquot::inventory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Two GPUs and a NIC on a machine of two sockets, all well.
DoctorView sound() {
  DoctorView view;
  view.system = {"580.65.06", "13.580.65.06", 13000};
  view.module_version = "580.65.06";
  view.gpu_direct = GpuDirect::kPeermem;
  view.host.numa = {{0, "0-23", 1, {10, 21}}, {1, "24-47", 1, {21, 10}}};
  for (unsigned i = 0; i < 2; ++i) {
    GpuLook gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.bus_id = "00000000:0" + std::to_string(i + 1) + ":00.0";
    gpu.memory_bytes = 1000;
    gpu.persistence = true;
    gpu.health.nvlinks_up = {true, true, false};
    view.gpus.push_back(gpu);
    PciDevice device;
    device.bus_id = "0000:0" + std::to_string(i + 1) + ":00.0";
    device.driver = "nvidia";
    device.numa = 0;
    device.link = device.own = device.most = {16, 16};
    device.chain = {"pci0000:00", "0000:00:01.0"};
    view.pci.push_back(device);
  }
  PciDevice nic = view.pci[0];
  nic.kind = PciKind::kNic;
  nic.driver = "mlx5_core";
  nic.bus_id = "0000:0c:00.0";
  view.pci.push_back(nic);
  RdmaDevice rdma;
  rdma.name = "mlx5_0";
  rdma.kind = RdmaKind::kRoceV2;
  rdma.pci = nic.bus_id;
  rdma.ports = {{1, true, true, 12500, "eth2", 3}};
  view.nics.push_back(rdma);
  view.pfc["eth2"] = "0,0,0,1,0,0,0,0";
  view.ecn["eth2"] = "00010000";
  view.shm_bytes = 8ull << 30;
  return view;
}

std::vector<std::string> codes(const DoctorView& view) {
  std::vector<std::string> all;
  for (const Finding& finding : diagnose(view)) all.emplace_back(finding.kind->code);
  return all;
}

TEST(Doctor, ASoundMachineHasNoFinding) { EXPECT_THAT(codes(sound()), IsEmpty()); }

TEST(Doctor, EveryCodeIsUniqueAndSaysWhatHelps) {
  std::set<std::string_view> seen;
  for (const FindingKind& kind : finding_kinds()) {
    EXPECT_TRUE(seen.insert(kind.code).second) << kind.code;
    EXPECT_FALSE(kind.what.empty()) << kind.code;
    EXPECT_FALSE(kind.remedy.empty()) << kind.code;
  }
}

TEST(Doctor, FindingsNameTheirGpuAndCarryEvidence) {
  DoctorView view = sound();
  view.gpus[1].health.uncorrected = 2;
  const auto findings = diagnose(view);
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings[0].subject, "GPU 1");
  EXPECT_EQ(findings[0].evidence, "2 uncorrectable ECC errors");
  EXPECT_EQ(findings[0].kind->severity, Severity::kError);
}

TEST(Doctor, HeatAndRemapsAreNamed) {
  DoctorView view = sound();
  view.gpus[0].health.temperature_c = 91;
  view.gpus[0].health.slowdown_c = 90;
  view.gpus[0].health.remap_pending = true;
  view.gpus[1].health.remap_failed = true;
  EXPECT_THAT(codes(view), ElementsAre("GPU_ROW_REMAP_PENDING", "GPU_ROW_REMAP_FAILED", "GPU_HOT"));
}

TEST(Doctor, ASilentGpuIsNotTakenForAMissingOne) {
  DoctorView view = sound();
  view.gpus[1] = GpuLook{};
  view.gpus[1].index = 1;
  view.gpus[1].hung = true;
  view.gpus[1].trouble = "no answer in time";
  EXPECT_THAT(codes(view), ElementsAre("NVML_HANGS"));
  // Nor does it hide one.
  view.pci.push_back(view.pci.front());
  view.pci.back().bus_id = "0000:7f:01.0";
  view.pci.back().kind = PciKind::kGpu;
  EXPECT_THAT(codes(view), UnorderedElementsAre("NVML_HANGS", "GPU_MISSING"));
}

TEST(Doctor, ADriverThatRefusesIsTheUsersToMend) {
  DoctorView view = sound();
  view.gpus.clear();
  view.trouble = "nvmlInit_v2: Insufficient Permissions";
  view.denied = true;
  EXPECT_THAT(codes(view), ElementsAre("NVML_ERR_NO_PERMISSION"));
  view.denied = false;
  view.hung = true;
  EXPECT_THAT(codes(view), ElementsAre("NVML_HANGS"));
}

TEST(Doctor, CompatLibrariesAreJudgedByTheImagesAndTheDriversVersion) {
  DoctorView view = sound();
  view.system.cuda_version = 12020;
  view.environment["CUDA_VERSION"] = "13.0.1";
  EXPECT_THAT(codes(view), ElementsAre("COMPAT_NEEDED"));
  view.forced_compat = {"/etc/ld.so.conf.d/000_cuda.conf"};
  EXPECT_THAT(codes(view), IsEmpty()) << "there it is right";
  view.environment["CUDA_VERSION"] = "12.2.0";
  EXPECT_THAT(codes(view), ElementsAre("COMPAT_FORCED"));
  view.gpus[0].name = "NVIDIA GeForce RTX 4090";
  view.forced_compat.clear();
  view.environment["CUDA_VERSION"] = "13.0.1";
  EXPECT_THAT(codes(view), ElementsAre("DRIVER_TOO_OLD"));
}

TEST(Doctor, AGuestThatShowsNoBridgeHidesItsTopology) {
  DoctorView view = sound();
  view.host.hypervisor = "KVM";
  for (PciDevice& device : view.pci) {
    device.numa.reset();
    device.chain = {"pci0000:00"};
  }
  EXPECT_THAT(codes(view), ElementsAre("TOPOLOGY_HIDDEN"));
}

TEST(Doctor, ANicOnTheOtherSocketIsFarOnlyWhenThereIsNoNearOne) {
  DoctorView view = sound();
  view.pci[1].chain = {"pci0000:80", "0000:80:01.0"};
  view.pci[1].numa = 1;
  EXPECT_THAT(codes(view), ElementsAre("NUMA_FAR_NIC"));
  view.nics[0].software = true;
  EXPECT_THAT(codes(view), ElementsAre("RDMA_SOFTWARE")) << "software is not near to anything";
}

TEST(Doctor, FlowControlAndMarkingAreReadWhereTheyCanBe) {
  DoctorView view = sound();
  view.pfc["eth2"] = "0,0,0,0,0,0,0,0";
  view.ecn["eth2"] = "00000000";
  EXPECT_THAT(codes(view), ElementsAre("RDMA_NO_PFC", "RDMA_NO_ECN"));
  view.pfc.clear();
  view.ecn.clear();
  EXPECT_THAT(codes(view), IsEmpty()) << "what cannot be read is no finding";
}

TEST(Doctor, NcclVariablesAreJudgedByWhatTheMachineHas) {
  DoctorView view = sound();
  view.environment = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_RETRY_CNT", "7"}, {"NCCL_DEBUG", "INFO"}};
  EXPECT_THAT(codes(view), ElementsAre("NCCL_HARMFUL", "NCCL_DEFAULT"));
  view.environment = {{"NCCL_IB_DISABLE", "1"}};
  view.nics.clear();
  EXPECT_THAT(codes(view), IsEmpty()) << "without RDMA it turns nothing off";
}

TEST(Doctor, AGidIndexThatIsNotTheIpv4OneDoesHarm) {
  DoctorView view = sound();
  view.environment = {{"NCCL_IB_GID_INDEX", "3"}};
  EXPECT_THAT(codes(view), IsEmpty());
  view.environment = {{"NCCL_IB_GID_INDEX", "0"}};
  EXPECT_THAT(codes(view), ElementsAre("NCCL_HARMFUL"));
}

TEST(Doctor, SharesArePromisedMoreThanThereIs) {
  DoctorView view = sound();
  view.shares = {{"GPU-0", 1200, 0}, {"GPU-1", 100, 1}};
  EXPECT_THAT(codes(view), ElementsAre("CGPU_ERR_OVERSUBSCRIPTION", "SHARE_BYPASS"));
}

TEST(Doctor, SmallRemaindersAreFragmentation) {
  DoctorView view = sound();
  view.shares = {{"GPU-0", 800, 0}, {"GPU-1", 800, 0}};
  EXPECT_THAT(codes(view), ElementsAre("CGPU_ERR_FRAGMENTATION"));
  view.shares = {{"GPU-0", 800, 0}};
  EXPECT_THAT(codes(view), IsEmpty()) << "200 of 1200 free bytes";
}

TEST(Doctor, HostAndContainerTroubleIsNamed) {
  DoctorView view = sound();
  view.mps = MpsState::kLeftover;
  view.shm_bytes = 64ull << 20;
  view.denied_nodes = {"/dev/nvidia0"};
  view.kubelet = true;
  EXPECT_THAT(codes(view), ElementsAre("MPS_LEFTOVER", "SHM_SMALL", "CGROUP_DEVICE_DENIED",
                                       "KUBELET_SOCKET_MISSING"));
}

}  // namespace
}  // namespace aliquot::inventory
