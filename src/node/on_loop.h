// Asks something of the loop's thread from another one, and waits for the answer.
//
// Not from the loop itself: it would wait for itself. When the loop does not turn for 10 s (it has
// stopped), that is the answer; the work may still run later, so it owns what it needs.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "broker/loop.h"
#include "common/result.h"

namespace aliquot::node {

template <typename T, typename Work>
Result<T> on_loop(broker::Loop& loop, Work work) {
  // Shared with the loop, which may answer when nobody waits any more.
  auto answer = std::make_shared<std::promise<Result<T>>>();
  auto waiting = answer->get_future();
  loop.post([answer, work = std::move(work)]() mutable { answer->set_value(work()); });
  if (waiting.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
    return Error{Errc::kUnavailable, "ask the broker: it did not answer within 10 s"};
  return waiting.get();
}

}  // namespace aliquot::node
