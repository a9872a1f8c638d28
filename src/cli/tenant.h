// The tenant's process: forked, put where its lease is all it sees of the GPUs, executed, watched.
// One thread; changes signal dispositions of the calling process while the command runs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/numa_binding.h"
#include "cli/tenant_namespace.h"
#include "common/result.h"

namespace aliquot::cli {

struct TenantLaunch {
  std::vector<std::string> command;  // program and arguments; found on PATH
  TenantView view;
  bool contained = true;        // in a mount namespace; else preloaded only
  std::filesystem::path names;  // our library under the driver's names (cooperative mode)
  std::optional<NumaBinding> numa = std::nullopt;
};

// Forks and executes. An error means that nothing runs; it says at which step. Errc::kNotFound:
// there is no such command; kDenied: it cannot be executed.
Result<pid_t> launch_tenant(const TenantLaunch& launch);

struct TenantWatch {
  int broker_pidfd = -1;              // borrowed; -1: none
  std::function<int()> broker_ended;  // starts the next; returns its pidfd (borrowed) or -1
  std::function<void()> look_around;  // for processes that bypass us; twice a second
};

// Passes signals on until the command ends; its exit status, or 128 + signal as shells say it.
int watch_tenant(pid_t tenant, const TenantWatch& watch);

}  // namespace aliquot::cli
