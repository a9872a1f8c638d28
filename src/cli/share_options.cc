#include "cli/share_options.h"

#include <algorithm>

#include "model/quantity.h"

namespace aliquot::cli {
namespace {

Error refused(std::string_view item, std::string_view why) {
  return {Errc::kInvalid, "--gpu \"" + std::string(item) + "\": " + std::string(why)};
}

Status read_memory(std::string_view text, broker::ShareRequest& share) {
  const auto parsed = model::parse_memory(text);
  if (!parsed) return parsed.error();
  share.memory = *parsed;
  return {};
}

// GPU[:MEMORY][/CORES]; what is absent is what the plain options said.
Result<broker::ShareRequest> share_of(std::string_view item, broker::ShareRequest share) {
  if (const std::size_t slash = item.find('/'); slash != std::string_view::npos) {
    const auto cores = model::parse_cores(item.substr(slash + 1));
    if (!cores) return cores.error();
    share.cores = *cores;
    item = item.substr(0, slash);
  }
  const std::size_t colon = item.find(':');
  share.gpu = item.substr(0, colon);
  if (share.gpu.empty()) return refused(item, "names no GPU; write INDEX or UUID");
  if (colon == std::string_view::npos) return share;
  const Status read = read_memory(item.substr(colon + 1), share);
  if (!read) return read.error();
  return share;
}

}  // namespace

Result<std::vector<broker::ShareRequest>> shares_of(const ShareOptions& options) {
  broker::ShareRequest plain;
  plain.cores = options.cores;
  if (!options.memory.empty())
    if (const Status read = read_memory(options.memory, plain); !read) return read.error();
  if (!options.gpu.empty() && options.gpus != 0)
    return Error{Errc::kInvalid, "--gpu and --gpus: give one of them"};
  if (options.gpu.empty()) {
    if (options.gpus > wire::kMaxGpus)
      return Error{Errc::kInvalid, "--gpus " + std::to_string(options.gpus) +
                                       ": a lease has at most " + std::to_string(wire::kMaxGpus)};
    return std::vector<broker::ShareRequest>(std::max(options.gpus, 1u), plain);
  }
  std::vector<broker::ShareRequest> shares;
  std::string_view rest = options.gpu;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const auto share = share_of(rest.substr(0, comma), plain);
    if (!share) return share.error();
    if (std::ranges::find(shares, share->gpu, &broker::ShareRequest::gpu) != shares.end())
      return refused(share->gpu, "named twice");
    shares.push_back(*share);
    if (more) rest.remove_prefix(comma + 1);
  }
  if (shares.size() > wire::kMaxGpus)
    return Error{Errc::kInvalid,
                 "--gpu: a lease has at most " + std::to_string(wire::kMaxGpus) + " GPUs"};
  return shares;
}

}  // namespace aliquot::cli
