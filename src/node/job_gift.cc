#include "node/job_gift.h"

#include "inventory/job_hints.h"

namespace aliquot::node {
namespace {

Result<bool> asked(const kube::Pod& pod, const char* annotation) {
  const std::string* text = pod.annotation(annotation);
  if (text == nullptr || *text == "false") return false;
  if (*text == "true") return true;
  return Error{Errc::kInvalid,
               std::string(annotation) + ": \"" + *text + "\": expected \"true\" or \"false\""};
}

}  // namespace

Result<JobWishes> job_wishes(const kube::Pod& pod) {
  const auto nccl = asked(pod, kNcclAnnotation);
  if (!nccl) return nccl.error();
  const auto rdma = asked(pod, kRdmaAnnotation);
  if (!rdma) return rdma.error();
  return JobWishes{*nccl || *rdma, *rdma};
}

Result<JobGift> job_gift(const JobWishes& wishes, const inventory::Inventory& inventory,
                         const inventory::Sysfs& sys, const std::vector<std::string>& uuids) {
  JobGift gift;
  if (!wishes.hints) return gift;
  const auto hcas = inventory::near_hcas(inventory, uuids);
  gift.hcas = inventory::nccl_hca_list(hcas);
  gift.topology = inventory::nccl_topology(inventory, uuids, hcas);
  if (!wishes.rdma) return gift;
  gift.nodes = inventory::verbs_nodes(sys, hcas);
  if (gift.nodes.empty())
    return Error{Errc::kNotFound,
                 std::string(kRdmaAnnotation) + ": " +
                     (hcas.empty() ? "no RDMA device with an active port is near these GPUs; see "
                                     "aliquot inventory, or ask for aliquot.dev/nccl alone"
                                   : "the kernel has no /dev/infiniband/uverbs for " + gift.hcas +
                                         "; load ib_uverbs")};
  return gift;
}

void add_job_gift(const JobGift& job, const std::filesystem::path& topology_file,
                  ContainerGift& gift) {
  if (!job.topology.empty()) {
    gift.mounts.push_back({topology_file.string(), kTenantNcclTopology});
    gift.environment["NCCL_TOPO_FILE"] = kTenantNcclTopology;
  }
  if (!job.hcas.empty()) gift.environment["NCCL_IB_HCA"] = job.hcas;
  for (const std::string& node : job.nodes) gift.devices.push_back({node, node});
}

}  // namespace aliquot::node
