#include "node/shared_list.h"

#include <chrono>
#include <thread>

namespace aliquot::node {
namespace {

constexpr unsigned kTries = 20;
constexpr std::chrono::milliseconds kPause(100);

}  // namespace

Result<SharedList::Answer> SharedList::fresh() {
  std::unique_lock lock(mutex_);
  // The next question to begin, or one that began after that.
  const std::uint64_t wanted = begun_ + 1;
  finished_.wait(lock, [&] { return done_ >= wanted || !asking_; });
  if (done_ >= wanted) return last_;
  asking_ = true;
  const std::uint64_t number = ++begun_;
  lock.unlock();
  Result<Answer> answer = ask();
  lock.lock();
  asking_ = false;
  done_ = number;
  last_ = answer;
  finished_.notify_all();
  return answer;
}

Result<SharedList::Answer> SharedList::ask() {
  for (unsigned i = 0;; ++i) {
    const Nanoseconds begun = clock_.now();
    auto book = resources_.list(names_);
    if (book) return Answer{std::make_shared<const KubeletBook>(*std::move(book)), begun};
    if (book.error().code != Errc::kExhausted) return book.error();
    // Others ask kubelet too: its limit is not ours alone.
    put_off_.fetch_add(1, std::memory_order_relaxed);
    if (i + 1 == kTries) return book.error();
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace aliquot::node
