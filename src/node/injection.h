// Injection: what a container must be given so that it meets its lease instead of the driver.
//
//   lease directory -> /run/aliquot/lease     our libraries -> /run/aliquot/lib, and over the
//   driver's names where loaders look          the driver -> /run/aliquot/driver/behind
//   /etc/ld.so.preload                         device nodes of the assigned GPUs, no others
//
// The runtime gets it as a CDI specification of the lease's own, written before the container is
// created and removed with the lease; or, for runtimes without CDI, as mounts at Allocate (then the
// device nodes are those of kubelet's slots, which is all that is known at that time). Every mount
// is read-only. Leaves to others: which lease. Pure but for laying out files; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "inventory/driver_choice.h"
#include "node/device_plugin.h"

namespace aliquot::node {

inline constexpr const char* kCdiKind = "aliquot.dev/lease";

// What all containers of the node share.
struct NodeFiles {
  std::filesystem::path libraries;  // versioned directory: libaliquot.so and the driver's names
  std::filesystem::path preload;    // to be /etc/ld.so.preload
  inventory::Driver driver;
  std::vector<std::string> companions;  // other libraries of a real driver, absolute
  std::filesystem::path image_check;    // run before a container is created; empty: nothing is
};

// Puts the library under STATE/lib/CONTENT-HASH and the names beside it. A library that is mapped
// somewhere is never overwritten: another content is another directory, which appears whole.
Result<NodeFiles> lay_out_node_files(const std::filesystem::path& state,
                                     const std::filesystem::path& library,
                                     const inventory::Driver& driver);

struct InjectedGpu {
  std::string uuid;
  unsigned minor = 0;  // /dev/nvidiaMINOR
};

// Everything for one container; `lease` is the directory that its tenant is shown.
ContainerGift injection_of(const NodeFiles& files, const std::filesystem::path& lease,
                           const std::vector<InjectedGpu>& gpus);

// "aliquot.dev/lease=KEY".
std::string cdi_name(const std::string& key);
std::filesystem::path cdi_path(const std::filesystem::path& directory, const std::string& key);
// The specification of one device, KEY, that gives the gift.
std::string cdi_text(const std::string& key, const ContainerGift& gift);

}  // namespace aliquot::node
