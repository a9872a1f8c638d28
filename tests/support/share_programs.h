// SharePrograms: whole programs in a share, with a real broker and the interposer's test driver.
//
// The library can be preloaded, stand in the driver's place, or both, as `aliquot run` has it. One
// thread; programs run as children of the test, which is their lease's runner.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "broker/broker_fixture.h"

namespace aliquot::test {

class SharePrograms : public broker::BrokerFixture {
 protected:
  SharePrograms() {
    machine_->id = 0;  // the GPUs that the test driver has
    // In the driver's place: the library under the driver's names.
    in_place_ = state_ / "in_place";
    std::filesystem::create_directories(in_place_);
    std::filesystem::create_symlink(ALIQUOT_LIBRARY, in_place_ / "libcuda.so.1");
  }

  broker::LeaseGrant lease_on(std::vector<std::string> gpus, std::uint64_t bytes) {
    broker::LeaseRequest request;
    request.driver = "fake";
    request.real_libcuda = ALIQUOT_FAKE_LIBCUDA;
    for (const std::string& gpu : gpus)
      request.shares.push_back({gpu, {model::MemoryQuantity::Kind::kBytes, bytes}, 0});
    auto granted = client().create_lease(request);
    EXPECT_TRUE(granted) << granted.error().message;
    return granted ? *granted : broker::LeaseGrant{};
  }

  std::string run(const std::string& environment, const std::string& program) {
    const std::string command = "env " + environment + " " + program + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;)
      output.append(buffer.data(), n);
    pclose(pipe);
    return output;
  }
  std::string preload(const broker::LeaseGrant& lease) const {
    return "ALIQUOT_LEASE=" + lease.directory +
           " LD_PRELOAD=" ALIQUOT_LIBRARY " LD_LIBRARY_PATH=" ALIQUOT_FAKE_DIRECTORY;
  }
  std::string in_place(const broker::LeaseGrant& lease) const {
    return "ALIQUOT_LEASE=" + lease.directory + " LD_LIBRARY_PATH=" + in_place_.string();
  }

  // As `aliquot run` has it where it can: both.
  std::string both(const broker::LeaseGrant& lease) const {
    return in_place(lease) + " LD_PRELOAD=" ALIQUOT_LIBRARY;
  }

  std::filesystem::path in_place_;
};

}  // namespace aliquot::test
