// DcgmSource: what dcgm-exporter tells of this node's GPUs, where it runs: the profiling figures
// (tensor, DRAM, PCIe and NVLink activity) that NVML does not have.
//
// Asked at each scrape, for half a second at most; no answer, no series, and aliquot_node_dcgm_up
// says so. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/http.h"
#include "log/log.h"
#include "node/exposition.h"
#include "node/figures.h"

namespace aliquot::node {

class DcgmSource {
 public:
  // "http://127.0.0.1:9400"; /metrics of it is asked for.
  DcgmSource(const std::string& url, log::Log log);

  void add_to(const NodeFigures& figures, std::vector<Family>& families);

 private:
  std::string url_;
  log::Log log_;
  kube::HttpConnection connection_;
  bool up_ = true;
};

}  // namespace aliquot::node
