// GpuClaims: one broker per real GPU on a machine, whoever runs it.
//
// Two users' brokers would each promise the whole of a GPU. A claim is the abstract socket name
// "aliquot-gpu-UUID": the kernel gives it to one process of a network namespace, and takes it back
// when that ends, however it ends. Loop thread only.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::broker {

class GpuClaims {
 public:
  // Errc::kUnavailable when another broker has the GPU. Claiming twice is once.
  Status claim(const std::string& uuid);
  // Gives back all but these.
  void keep_only(const std::set<std::string>& uuids);

 private:
  std::map<std::string, UniqueFd> held_;
};

}  // namespace aliquot::broker
