// The options that say how much of which GPU: --gpu, --gpus, --memory, --cores. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "broker/requests.h"
#include "common/result.h"

namespace aliquot::cli {

struct ShareOptions {
  std::string gpu = {};     // "0", "0:4GiB/30,GPU-...:1.5GiB,2/50"; empty: the broker chooses
  unsigned gpus = 0;        // --gpus N: the best N; 0: not given
  std::string memory = {};  // for every GPU that says nothing itself; empty: all of the GPU
  std::uint32_t cores = 0;  // the same, in 1/100 %; 0: no guarantee
};

// At most wire::kMaxGpus shares; a GPU named twice, or --gpu beside --gpus, is an error.
Result<std::vector<broker::ShareRequest>> shares_of(const ShareOptions& options);

}  // namespace aliquot::cli
