#include "broker/bounded_probe.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace aliquot::broker {

// Jobs of one driver, one after the other. The thread keeps the worker alive; end() lets it go.
class BoundedProbes::Worker : public std::enable_shared_from_this<Worker> {
 public:
  explicit Worker(std::string driver) : driver_(std::move(driver)) {}

  void start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([self = shared_from_this()] { self->run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    news_.notify_all();
  }

  void post(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    news_.notify_all();
  }

  template <typename T>
  Result<T> ask(Nanoseconds patience, std::function<Result<T>()> question) {
    std::unique_lock lock(mutex_);
    if (overdue_)
      return Error{Errc::kUnavailable, "ask driver " + driver_ +
                                           ": it has not answered what it was asked before; its "
                                           "memory and use are not known meanwhile"};
    const auto answer = std::make_shared<std::optional<Result<T>>>();
    jobs_.emplace_back([this, answer, question = std::move(question)] {
      Result<T> result = question();
      const std::lock_guard guard(mutex_);
      answer->emplace(std::move(result));
      overdue_ = false;
    });
    news_.notify_all();
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience);
    news_.wait_until(lock, until, [&] { return answer->has_value(); });
    std::optional<Result<T>> got = std::move(*answer);
    if (got) return std::move(*got);
    overdue_ = true;
    return Error{Errc::kUnavailable, "ask driver " + driver_ + ": no answer within " +
                                         std::to_string(patience / kMillisecond) +
                                         " ms; asked again once it has answered"};
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "probe");
    std::unique_lock lock(mutex_);
    while (true) {
      news_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      {
        const std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
      }
      lock.lock();
      news_.notify_all();
    }
  }

  const std::string driver_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> jobs_;
  bool ended_ = false;
  bool overdue_ = false;  // somebody has waited in vain for the job at hand
};

class BoundedProbes::Probe final : public GpuProbe {
 public:
  Probe(std::shared_ptr<Worker> worker, std::shared_ptr<GpuProbe> probe, Nanoseconds patience)
      : worker_(std::move(worker)),
        probe_(std::move(probe)),
        patience_(patience),
        machine_wide_(probe_->is_machine_wide()) {}
  // Closing a driver is asking it too.
  ~Probe() override {
    worker_->post([probe = std::move(probe_)]() mutable { probe.reset(); });
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Result<std::vector<ProbedGpu>> gpus() override {
    return worker_->ask<std::vector<ProbedGpu>>(patience_,
                                                [probe = probe_] { return probe->gpus(); });
  }
  Result<std::vector<ProbedUse>> use(std::uint32_t gpu, std::uint64_t after_us) override {
    return worker_->ask<std::vector<ProbedUse>>(
        patience_, [probe = probe_, gpu, after_us] { return probe->use(gpu, after_us); });
  }
  bool is_machine_wide() const override { return machine_wide_; }

 private:
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<GpuProbe> probe_;
  Nanoseconds patience_;
  bool machine_wide_;
};

BoundedProbes::~BoundedProbes() {
  for (auto& [driver, worker] : workers_) worker->end();
}

Result<std::unique_ptr<GpuProbe>> BoundedProbes::open(const std::string& driver) {
  std::shared_ptr<Worker>& worker = workers_[driver];
  if (!worker) {
    worker = std::make_shared<Worker>(driver);
    worker->start();
  }
  using Opened = std::shared_ptr<GpuProbe>;
  auto opened = worker->ask<Opened>(patience_.open, [inner = inner_, driver]() -> Result<Opened> {
    auto probe = inner->open(driver);
    if (!probe) return probe.error();
    return Opened(std::move(*probe));
  });
  if (!opened) return opened.error();
  return std::unique_ptr<GpuProbe>(
      std::make_unique<Probe>(worker, std::move(*opened), patience_.answer));
}

}  // namespace aliquot::broker
