// scaled(): a struct of nothing but nanoseconds, each times a factor. Internal to the room.
#pragma once

#include <array>
#include <bit>

#include "common/clock.h"

namespace aliquot::gate {

template <typename Options>
Options scaled(const Options& options, double factor) {
  static_assert(sizeof(Options) % sizeof(Nanoseconds) == 0);
  auto times =
      std::bit_cast<std::array<Nanoseconds, sizeof(Options) / sizeof(Nanoseconds)>>(options);
  for (Nanoseconds& time : times) {
    time = static_cast<Nanoseconds>(static_cast<double>(time) * factor);
  }
  return std::bit_cast<Options>(times);
}

}  // namespace aliquot::gate
