#include "node/dcgm_source.h"

#include "kube/access.h"
#include "node/exposition_read.h"

namespace aliquot::node {
namespace {

constexpr Nanoseconds kPatience = 500 * kMillisecond;

}  // namespace

DcgmSource::DcgmSource(const std::string& url, log::Log log)
    : url_(url), log_(std::move(log)), connection_(kube::anonymous_access(url)) {}

void DcgmSource::add_to(const NodeFigures& figures, std::vector<Family>& families) {
  kube::HttpRequest request;
  request.path = "/metrics";
  const auto answer = connection_.exchange(request, kPatience, {});
  const bool up = answer && answer->status == 200;
  if (!up && up_)
    log_.warning("ask " + url_ + "/metrics: " +
                 (answer ? "status " + std::to_string(answer->status)
                         : connection_.failure().error.message) +
                 "; its series are left out");
  up_ = up;
  families.push_back({"aliquot_node_dcgm_up",
                      MetricType::kGauge,
                      "",
                      "1 while dcgm-exporter answers.",
                      {{{}, up ? 1.0 : 0.0}}});
  if (up) merge_exposition(figures, read_exposition(answer->body, "DCGM_"), families);
}

}  // namespace aliquot::node
