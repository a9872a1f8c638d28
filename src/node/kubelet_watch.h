// KubeletWatch: keeps one plugin served and registered, whatever kubelet does.
//
// One thread of its own: it looks at kubelet's directory when inotify says that something happened
// there and otherwise once a second (events are lost in an overflow, and the directory itself may
// be replaced), asks RegistrationRule, and does it. Ready means that kubelet holds our stream, not
// that we run. Functions are for any thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "log/log.h"
#include "node/device_plugin.h"
#include "node/registration.h"

namespace aliquot::node {

class KubeletWatch {
 public:
  struct Options {
    std::filesystem::path directory = "/var/lib/kubelet/device-plugins";
    std::string endpoint = "aliquot.sock";
    std::string resource = "aliquot.dev/gpu";
    unsigned slots_per_gpu = 16;
    unsigned first_slot = 0;
    log::Log log;
  };

  // Starts the thread. All references outlive this.
  KubeletWatch(Options options, const DeviceBoard& board, PluginDecisions& decisions,
               const Clock& clock);
  // Ends within about a second, or what a registration under way still takes.
  ~KubeletWatch();
  KubeletWatch(const KubeletWatch&) = delete;
  KubeletWatch& operator=(const KubeletWatch&) = delete;

  bool is_ready() const { return ready_; }
  unsigned registrations() const { return registrations_; }

 private:
  void run();
  Sight look();
  void serve();
  void enroll(const SocketMark& kubelet);
  void wait();
  void watch_directory();
  std::filesystem::path own_path() const { return options_.directory / options_.endpoint; }

  Options options_;
  const DeviceBoard& board_;
  PluginDecisions& decisions_;
  const Clock& clock_;
  RegistrationRule rule_;
  std::unique_ptr<PluginServer> server_;
  SocketMark own_;
  UniqueFd inotify_, wake_;
  std::string last_complaint_;
  std::atomic<bool> stopping_ = false, ready_ = false;
  std::atomic<unsigned> registrations_ = 0;
  std::thread thread_;
};

}  // namespace aliquot::node
