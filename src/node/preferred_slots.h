// Which of the free slots a container had best get. A hint: kubelet may do otherwise, and the
// assignment made at bind wins over it in any case. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "node/device_board.h"

namespace aliquot::node {

enum class SlotStrategy {
  kBinpack,  // the GPU with fewest free slots: others stay whole
  kSpread,   // the GPU with most
};

struct SlotQuestion {
  const std::vector<std::string>& available;
  const std::vector<std::string>& must;  // among the available
  std::size_t count = 0;
};

// Several slots go to different GPUs, to those that talk fastest to each other where that is known;
// more slots than GPUs go round. At most `count` ids, `must` first.
std::vector<std::string> preferred_slots(const DeviceBoard::Content& board,
                                         const SlotQuestion& question, SlotStrategy strategy);

}  // namespace aliquot::node
