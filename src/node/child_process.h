// ChildProcess: a program of ours at the other end of two pipes. Started without a shell, with
// /dev/null and our stderr; killed and waited for when destroyed. One thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::node {

class ChildProcess {
 public:
  // `words[0]` is the program's path.
  static Result<ChildProcess> start(const std::vector<std::string>& words);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { end(); }

  pid_t pid() const { return pid_; }
  // To its stdin; false when it does not take it.
  bool send(char byte) const;
  int output() const { return output_.get(); }  // we read; not blocking
  bool has_ended();
  void kill_now() const;

 private:
  ChildProcess() = default;
  void end();

  pid_t pid_ = -1;
  UniqueFd input_, output_;
};

// What the program prints, at most `limit_ms` (else Errc::kUnavailable); an error when it fails,
// with what it said on stderr left there.
// `stop` (may be null) ends the wait within 100 ms.
Result<std::string> output_of(const std::vector<std::string>& words, int limit_ms,
                              const std::atomic<bool>* stop = nullptr);

}  // namespace aliquot::node
