// The private mount namespace in which a tenant meets our library wherever it looks for the driver.
//
// Inside it, /run/aliquot is a small tree of its own, read-only:
//   lease/   the tenant's lease directory        lib/     libaliquot.so under every driver name
//   driver/  the driver behind it, by other names so that no search path finds it
//   ld.so.cache, ld.so.preload, bound over /etc
// Everything else of ours (the state directory with other leases and the broker) is hidden. What
// each piece closes, and what it does not, stands in docs/security.md.
//
// Leaves to others: choosing the driver, making the lease, starting the command.
// enter_tenant_namespace changes the calling process for good: call it in a child between fork and
// exec, single-threaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "wire/tenant_paths.h"

namespace aliquot::cli {

using wire::kTenantDriver;
using wire::kTenantLease;
using wire::kTenantLibcuda;
using wire::kTenantLibnvidiaMl;
using wire::kTenantLibrary;
using wire::kTenantRoot;

struct TenantView {
  std::filesystem::path lease;            // shown at kTenantLease
  std::filesystem::path library;          // libaliquot.so
  std::filesystem::path state_directory;  // hidden whole

  // The driver's two libraries; of a real driver, each is also replaced where it lies.
  std::filesystem::path libcuda;
  std::filesystem::path libnvidia_ml;
  // Of a simulated machine: what its libraries look for beside their directory is shown too.
  std::filesystem::path simulated_machine;  // empty: a real driver

  // A loader cache named ld.so.cache that knows kTenantRoot/lib; the first tenant makes it.
  std::filesystem::path loader_cache;
};

// Whether this process could enter such a namespace; the error says what the kernel refused.
// Tries it in a child, so nothing changes here.
Status tenant_namespace_possible();

// Changes this process into the namespace. On failure the process must not go on to run a tenant.
Status enter_tenant_namespace(const TenantView& view);

}  // namespace aliquot::cli
