// SharedList: podresources' List, asked once for many who want it at the same time.
//
// kubelet answers 100 a second in bursts of 10 and may start a hundred containers at once. Whoever
// asks gets a list that was begun after his question; all that ask while one is under way share the
// next. Any thread; a caller waits a few seconds at most.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "node/kubelet_book.h"

namespace aliquot::node {

class SharedList {
 public:
  // Both outlive this.
  SharedList(PodResources& resources, std::vector<std::string> names, const Clock& clock)
      : resources_(resources), names_(std::move(names)), clock_(clock) {}

  struct Answer {
    // Shared by all who asked together.
    std::shared_ptr<const KubeletBook> book;
    Nanoseconds begun_at = 0;
  };
  Result<Answer> fresh();
  // How often kubelet refused to answer because it was asked too often, by us or by others.
  std::uint64_t put_off() const { return put_off_.load(std::memory_order_relaxed); }

 private:
  Result<Answer> ask();

  PodResources& resources_;
  std::vector<std::string> names_;  // of what is offered
  const Clock& clock_;
  std::atomic<std::uint64_t> put_off_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  bool asking_ = false;
  std::uint64_t begun_ = 0, done_ = 0;  // questions, counted
  Result<Answer> last_ = Answer{};      // of question done_
};

}  // namespace aliquot::node
