// Daemon: all of aliquotd, built in the order in which its parts need one another.
//
//   driver and inventory -> broker (machine-wide, one loop) and probes -> kubelet's half, where
//   there is a kubelet: pods, late binding, device plugin
//
// run() is the loop; what may take long (kubelet, the API server, the inventory) has threads of its
// own that post to it. Killed at any time it leaves what the next one needs on disk. open(), run()
// and the destructor on one thread; stop() and reload() from any, also from a signal handler.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "broker/broker.h"
#include "kube/api_client.h"
#include "kube/pod_source.h"
#include "node/config.h"
#include "node/dcgm_source.h"
#include "node/device_board.h"
#include "node/kubelet_watch.h"
#include "node/late_binding.h"
#include "node/machine_view.h"
#include "node/node_figures.h"
#include "node/node_health.h"
#include "node/notices.h"
#include "node/probe_pool.h"
#include "node/scrape_server.h"
#include "node/tenant_watch.h"
#include "node/unleased.h"
#include "node/usage_watch.h"

namespace aliquot::node {

// The programs and libraries that belong to this one.
struct Installation {
  std::filesystem::path probe;        // aliquot-probe
  std::filesystem::path library;      // libaliquot.so
  std::filesystem::path image_check;  // aliquot-image-check
};

class Daemon {
 public:
  struct Options {
    Config config;
    Installation installation;
    std::filesystem::path machines;  // the state directory in which simulated machines are found
    int inherited_listener = -1;     // of broker.sock
    const std::atomic<bool>* give_up = nullptr;  // ends open()'s wait for the driver
    int driver_patience_ms = 20'000;             // before it is asked once more
    log::Log log;
  };
  // A first start waits for a driver that does not answer: nothing else knows the GPUs.
  static Result<std::unique_ptr<Daemon>> open(Options options, const Clock& clock);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void run();
  void stop() { broker_->stop(); }
  // What may change while it runs. Any thread.
  void reload(const Config& config);
  // The driver's inventory is taken anew, soon.
  void refresh();

  bool is_ready() const;
  ProbePool& probes() { return *probes_; }
  DeviceBoard& board() { return board_; }
  broker::Broker& broker() { return *broker_; }
  const LateBinding* binding() const { return binding_.get(); }
  // One look at everything. Any thread but the loop's.
  Result<NodeFigures> figures();
  // Processes on a GPU that no lease knows, as of the last looks (every 2 s). Any thread.
  std::vector<UnleasedProcess> unleased() const;

 private:
  class Probes;
  // What the machine is, as of one inventory.
  struct Machine {
    FoundMachine found;
    MachineView view;
  };

  Daemon(Options options, FoundMachine machine, const Clock& clock);
  std::shared_ptr<const Machine> machine() const;
  Status start_broker();
  Status start_kubelet_half();
  Status add_wishes(const kube::Pod& pod, const BoundContainer& bound, ContainerGift& gift) const;
  Status start_api_client();
  void start_pods();
  Status start_metrics();
  MachineSearch search() const;
  void maintain();
  void take_inventory();
  void look_at_tenants();
  void compare_allocatable();
  std::string unlike_offered(const KubeletWatch* watch, const std::string& resource,
                             unsigned slots_per_gpu) const;
  void look_for_unleased(const std::vector<broker::LeaseRow>& leases);
  void report_unleased(const UnleasedProcess& process);
  void report_misconduct(const Misconduct& one);
  void report(const kube::EventTarget& target, const char* reason, const std::string& text);
  void report_health(const HealthChange& change);
  std::vector<broker::NoteRow> notes() const;

  Options options_;
  const inventory::Driver driver_;  // the same for all its life
  const Clock& clock_;
  DeviceBoard board_;
  std::unique_ptr<Probes> probe_source_;
  std::unique_ptr<broker::Broker> broker_;
  NodeHealth health_;
  std::unique_ptr<ProbePool> probes_;
  std::unique_ptr<UsageWatch> usage_;
  std::unique_ptr<PodResources> resources_;
  std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<Notices> notices_;  // null without an API server; outlives the broker's loop
  std::unique_ptr<LateBinding> binding_;
  std::unique_ptr<kube::PodSource> pods_;
  std::unique_ptr<KubeletWatch> watch_, nvidia_watch_;
  std::unique_ptr<DcgmSource> dcgm_;
  std::unique_ptr<ScrapeServer> scrapes_;

  mutable std::mutex mutex_;                // guards what follows
  std::shared_ptr<const Machine> machine_;  // shared with whoever looks while another is taken
  std::vector<UnleasedProcess> unleased_;
  std::vector<Misconduct> misconduct_;
  std::string unlike_kubelet_;  // what it would give out is not what is offered
  std::condition_variable woken_;
  bool stopping_ = false, pods_changed_ = false, inventory_wanted_ = false;
  std::atomic<bool> ending_ = false;
  std::vector<UnleasedProcess> unleased_candidates_;  // the maintenance thread's, as the next
  std::string unlike_candidate_;
  std::thread maintenance_;
};

}  // namespace aliquot::node
