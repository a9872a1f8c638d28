#include "node/job_gift.h"

#include <gmock/gmock.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::node {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

kube::Pod pod_with(const std::string& annotation, const std::string& value) {
  kube::Pod pod;
  pod.annotations[annotation] = value;
  return pod;
}

// One GPU beside one HCA.
inventory::Inventory one_gpu() {
  inventory::Inventory all;
  inventory::InventoryGpu gpu;
  gpu.identity.uuid = "GPU-a";
  gpu.identity.bus_id = "00000000:07:00.0";
  gpu.nearest_nic = "mlx5_2";
  all.gpus = {gpu};
  inventory::RdmaDevice nic;
  nic.name = "mlx5_2";
  nic.pci = "0000:08:00.0";
  nic.ports = {{1, true, false, 25'000, "", {}}};
  all.nics = {nic};
  all.topology = model::NodeTopology({model::Device{}}, {model::Device{}});
  all.topology.set_link(0, 1, model::path_link(model::LinkKind::kPix, 4));
  return all;
}

TEST(JobGift, NothingIsGivenUnasked) {
  const auto wishes = job_wishes({});
  ASSERT_TRUE(wishes);
  const auto gift = job_gift(*wishes, one_gpu(), inventory::Sysfs("/nowhere"), {"GPU-a"});
  ASSERT_TRUE(gift);
  ContainerGift container;
  add_job_gift(*gift, "/state/x.xml", container);
  EXPECT_THAT(container.environment, IsEmpty());
  EXPECT_THAT(container.mounts, IsEmpty());
  EXPECT_THAT(container.devices, IsEmpty());
}

TEST(JobGift, HintsComeWithoutDeviceNodes) {
  const auto wishes = job_wishes(pod_with(kNcclAnnotation, "true"));
  ASSERT_TRUE(wishes);
  const auto gift = job_gift(*wishes, one_gpu(), inventory::Sysfs("/nowhere"), {"GPU-a"});
  ASSERT_TRUE(gift) << gift.error().message;
  EXPECT_THAT(gift->topology, HasSubstr("0000:08:00.0"));
  ContainerGift container;
  add_job_gift(*gift, "/state/x.xml", container);
  EXPECT_EQ(container.environment.at("NCCL_TOPO_FILE"), kTenantNcclTopology);
  EXPECT_EQ(container.environment.at("NCCL_IB_HCA"), "=mlx5_2:1");
  EXPECT_EQ(container.mounts.at(0).host, "/state/x.xml");
  EXPECT_THAT(container.devices, IsEmpty());
}

TEST(JobGift, RdmaGivesTheChosenHcasNodeAndNoOther) {
  const inventory::SysfsFixture sys;
  sys.file("class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  sys.file("class/infiniband_verbs/uverbs7/ibdev", "mlx5_2\n");
  const auto gift = job_gift({true, true}, one_gpu(), sys.sys(), {"GPU-a"});
  ASSERT_TRUE(gift) << gift.error().message;
  EXPECT_THAT(gift->nodes, testing::ElementsAre("/dev/infiniband/uverbs7"));
}

TEST(JobGift, RdmaThatCannotBeGivenIsRefusedWithTheReason) {
  const inventory::SysfsFixture sys;
  EXPECT_THAT(job_gift({true, true}, one_gpu(), sys.sys(), {"GPU-a"}).error().message,
              HasSubstr("load ib_uverbs"));
  inventory::Inventory alone = one_gpu();
  alone.nics[0].ports[0].active = false;
  EXPECT_THAT(job_gift({true, true}, alone, sys.sys(), {"GPU-a"}).error().message,
              HasSubstr("no RDMA device with an active port"));
}

TEST(JobGift, WordsThatCannotBeMeantAreAnError) {
  EXPECT_THAT(job_wishes(pod_with(kRdmaAnnotation, "yes")).error().message,
              HasSubstr("expected \"true\" or \"false\""));
  EXPECT_FALSE(job_wishes(pod_with(kRdmaAnnotation, "false"))->rdma);
}

}  // namespace
}  // namespace aliquot::node
