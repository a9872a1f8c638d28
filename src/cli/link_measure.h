// What the links of this machine's GPUs carry, measured by copies through the driver API: pinned
// host memory to each GPU and back, and each GPU to each other one.
//
// Times are the GPU's own (events around a copy), the best of several, because what else runs only
// slows a copy down. Takes 64 MiB on each GPU and as much pinned memory, and gives all back.
// measure_links() needs seconds; one thread. The rest is pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace aliquot::cli {

struct MeasuredWay {
  double mb_s = 0;        // 10^6 bytes a second
  double latency_us = 0;  // of a copy of 8 bytes, from its start to its end
};

struct MeasuredHost {
  unsigned gpu = 0;
  MeasuredWay to_device, from_device;
};

struct MeasuredPeer {
  unsigned from = 0, to = 0;
  bool direct = false;  // the driver lets one reach the other; else the copy goes through the host
  MeasuredWay way;
};

struct LinkMeasure {
  std::vector<MeasuredHost> hosts;
  std::vector<MeasuredPeer> peers;  // every ordered pair
};

// GPUs in PCI order. `libcuda` is an absolute path.
Result<LinkMeasure> measure_links(const std::string& libcuda);

// What a PCIe link can carry one way at most: the lanes' raw rate less the line code (8b/10b to
// generation 2, 128b/130b to 5, none in 6) and 24 bytes of head on each packet of `payload` bytes.
// 3.0 x16 with 256: 14.4 GB/s. 0: not known.
double pcie_ceiling_mb_s(unsigned generation, unsigned width, unsigned payload_bytes = 256);

}  // namespace aliquot::cli
