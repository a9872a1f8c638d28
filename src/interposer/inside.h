// Inside: marks that this thread is already in one of our functions.
//
// The driver may call its own exported functions, and those calls may come back to us; the outer
// call has charged, so the inner one goes straight through. One word of static TLS, no allocation.
#pragma once

namespace aliquot::interposer {

class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool now() { return depth_ != 0; }

 private:
  static inline thread_local constinit unsigned depth_ [[gnu::tls_model("initial-exec")]] = 0;
};

}  // namespace aliquot::interposer
