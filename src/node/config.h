// What aliquotd is told: a file, flags, or both (a flag wins). Every key is a flag; unknown keys
// and values that cannot be meant are errors. docs/formats/node_config.md.
//
// The file is YAML, or INI with the section [DevicePlugin] as users of other device plugins have
// it. On SIGHUP it is read again: keys marked so take effect, others are reported and wait for a
// restart. Values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "log/log.h"
#include "node/late_binding.h"
#include "node/observe_rule.h"
#include "node/preferred_slots.h"

namespace aliquot::node {

enum class UseKubelet { kAuto, kYes, kNo };
// What happens to a container's process that uses a GPU past its share.
enum class OnUnleased { kReport, kEnd };

struct Config {
  std::filesystem::path state_directory = "/run/aliquot";
  std::filesystem::path cache_directory = "/var/lib/aliquot";
  std::string sim;  // a running simulated machine; empty: the rule of every program
  UseKubelet kubelet = UseKubelet::kAuto;
  std::filesystem::path kubelet_directory = "/var/lib/kubelet";
  std::string resource = "aliquot.dev/gpu";
  unsigned slots_per_gpu = 16;
  Nanoseconds health_check_interval = 60 * kSecond;
  Nanoseconds health_quiet = 300 * kSecond;  // an XID counts as gone when it did not come again
  std::string unhealthy_taint;               // effect of the taint; empty: none
  OnUnleased on_unleased = OnUnleased::kReport;
  ObserveRule observe;
  unsigned nvidia_replicas = 0;  // of each GPU as nvidia.com/gpu; 0: that is not served
  SlotStrategy allocator_strategy = SlotStrategy::kBinpack;
  std::uint64_t default_memory_unit = 0;  // of a bare number of memory; 0: those are refused
  InjectionWay injection = InjectionWay::kCdi;
  std::filesystem::path cdi_directory = "/var/run/cdi";
  std::string node_name;             // as the API server has it; empty: pods come from kubelet
  std::filesystem::path kubeconfig;  // empty: $KUBECONFIG, else in-cluster
  std::string kubelet_url = "http://127.0.0.1:10255";  // its /pods, without an API server
  std::string metrics_address = "127.0.0.1:9478";      // IP:PORT; empty: none
  std::string dcgm_url;  // of dcgm-exporter, "http://127.0.0.1:9400"; empty: none
  std::string compat;    // "dcgm", "hami" or both with a comma: their metric names as well
  log::Level log_level = log::Level::kInfo;
  bool operator==(const Config&) const = default;
};

struct ConfigKey {
  std::string_view name;   // with underscores; flags also take hyphens
  std::string_view value;  // what it takes, for help
  std::string_view help;
  bool reloadable;
  Status (*set)(Config&, const std::string& text);
  bool (*same)(const Config&, const Config&);
};
std::span<const ConfigKey> config_keys();

Status set_key_of(Config& config, std::string_view name, const std::string& text,
                  std::string_view where);
// Changes of `config` by the file's text. `where` names it in errors.
Status read_config(Config& config, std::string_view text, std::string_view where);
// Names of keys in which the two differ and that take effect only at the next start.
std::vector<std::string> keys_for_restart(const Config& before, const Config& after);

}  // namespace aliquot::node
