// Work that may hang, done in a child process with a deadline.
//
// A driver call that never returns can be neither cancelled nor joined; a child can be killed. The
// child is forked without exec: it must not rely on other threads of the caller. The caller's
// thread waits; many children can be begun first and waited for after.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::inventory {

// The words of wait()'s error when the deadline passed.
inline constexpr const char* kNoAnswer = "no answer in time";

class BoundedChild {
 public:
  // Begins `work` in a child; what it returns is what wait() gives.
  static Result<BoundedChild> begin(const std::function<std::string()>& work);
  BoundedChild(BoundedChild&& other) noexcept;
  BoundedChild& operator=(BoundedChild&&) = delete;
  ~BoundedChild();  // kills it when it still runs

  // kUnavailable: nothing whole came until `deadline` (CLOCK_MONOTONIC), or the child crashed.
  Result<std::string> wait(Nanoseconds deadline);

 private:
  BoundedChild(pid_t child, UniqueFd pipe) : child_(child), pipe_(std::move(pipe)) {}
  pid_t child_ = 0;
  UniqueFd pipe_;
};

}  // namespace aliquot::inventory
