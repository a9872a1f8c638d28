// Times as metrics have them.
#pragma once

#include <concepts>

namespace aliquot::node {

double seconds_of(std::integral auto nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

}  // namespace aliquot::node
