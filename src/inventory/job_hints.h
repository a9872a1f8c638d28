// What a job that uses several GPUs can be told of the machine it runs on: which HCA is near, a
// topology for NCCL, whether its image needs CUDA's forward-compat libraries.
//
// Hints only: nothing here limits or opens anything. Leaves to others: who asked, and the injection
// (node). Pure but for verbs_nodes(), which reads sysfs; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inventory/document.h"
#include "inventory/sysfs.h"

namespace aliquot::inventory {

// The RDMA devices nearest to these GPUs, each once, in the GPUs' order: hardware with an active
// port. Empty: there is none near, and a far one is not forced upon the job.
std::vector<const RdmaDevice*> near_hcas(const Inventory& inventory,
                                         const std::vector<std::string>& uuids);

// NCCL_IB_HCA: "=mlx5_0:1,mlx5_3:1", exactly these and their active ports. Empty: none.
std::string nccl_hca_list(const std::vector<const RdmaDevice*>& hcas);

// NCCL_TOPO_FILE: how the GPUs and the HCAs hang on PCIe, for a container or a guest whose /sys
// does not show it. NCCL finds the rest (NVLinks, speeds of NICs) by itself. Empty: links not
// known.
std::string nccl_topology(const Inventory& inventory, const std::vector<std::string>& uuids,
                          const std::vector<const RdmaDevice*>& hcas);

// "/dev/infiniband/uverbsN" of these devices and of no other.
std::vector<std::string> verbs_nodes(const Sysfs& sys, const std::vector<const RdmaDevice*>& hcas);

// Whether an image of this CUDA version is to use its forward-compat libraries on this driver.
struct CompatAdvice {
  bool use = false;
  bool possible = true;  // false: the image cannot run on this driver either way
  std::string reason;
};
// Versions as NVML and CUDA count them: 13000 is 13.0. `data_center`: GPUs for which NVIDIA offers
// forward compatibility (not GeForce). Rules: CUDA compatibility guide; drivers are older-image
// compatible always, within a major version from 11 on in both directions, beyond it only so.
CompatAdvice compat_advice(int driver_cuda, int image_cuda, bool data_center);
// "12.4.1" -> 12040; 0: not understood.
int cuda_version_of(std::string_view text);
// By the product's name.
bool is_data_center(std::string_view gpu_name);

}  // namespace aliquot::inventory
