// What a pod that asks for it gets of a distributed job's needs: hints for NCCL, the RDMA device
// nodes of the HCAs near its GPUs.
//
//   aliquot.dev/nccl: "true"   NCCL_TOPO_FILE and NCCL_IB_HCA for the leased GPUs
//   aliquot.dev/rdma: "true"   that, and /dev/infiniband/uverbsN of the chosen HCAs, of no other
//
// Leaves to others: which HCA is near (inventory/job_hints.h), writing the topology. Pure but for
// sysfs; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "inventory/document.h"
#include "kube/pod.h"
#include "node/device_plugin.h"

namespace aliquot::node {

inline constexpr const char* kNcclAnnotation = "aliquot.dev/nccl";
inline constexpr const char* kRdmaAnnotation = "aliquot.dev/rdma";
inline constexpr const char* kTenantNcclTopology = "/run/aliquot/nccl-topology.xml";

struct JobWishes {
  bool hints = false;
  bool rdma = false;
};
// An error says which words are understood.
Result<JobWishes> job_wishes(const kube::Pod& pod);

struct JobGift {
  std::string topology;  // the file's text; empty: none
  std::string hcas;      // NCCL_IB_HCA; empty: none is near
  std::vector<std::string> nodes;
};
// Asked for RDMA where no HCA is near is an error: the container would come up without what it
// needs.
Result<JobGift> job_gift(const JobWishes& wishes, const inventory::Inventory& inventory,
                         const inventory::Sysfs& sys, const std::vector<std::string>& uuids);
// `topology_file`: where the topology's text lies on the host.
void add_job_gift(const JobGift& job, const std::filesystem::path& topology_file,
                  ContainerGift& gift);

}  // namespace aliquot::node
