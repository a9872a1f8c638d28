#include "replay/gpu_speed.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace aliquot::replay {
namespace {

struct Row {
  std::string_view name;
  double tflops;  // dense FP16, by tensor cores where there are some
  double gb_s;
};

constexpr std::array kRows{
    Row{"T4", 65, 320},
    Row{"t4", 65, 320},
    Row{"P100", 21.2, 732},
    Row{"V100", 125, 900},
    Row{"V100M16", 125, 900},
    Row{"V100M32", 125, 900},
    Row{"v100-sxm2-32gb", 125, 900},
    Row{"A10", 125, 600},
    Row{"A100", 312, 1'555},
    Row{"A100-SXM4-80GB", 312, 2'039},
    Row{"a100-sxm4-80gb", 312, 2'039},
    Row{"A800-SXM4-80GB", 312, 2'039},
    Row{"L40S", 362, 864},
    Row{"l40s", 362, 864},
    Row{"rtx4090", 165, 1'008},
    Row{"H20", 148, 4'000},
    Row{"h20", 148, 4'000},
    Row{"H100", 989, 3'350},
    Row{"h100-sxm5-80gb", 989, 3'350},
    Row{"H800", 989, 3'350},
    Row{"h200-sxm5-141gb", 989, 4'800},
    Row{"b200-180gb", 2'250, 7'700},
    Row{"gb200-186gb", 2'500, 8'000},
};

}  // namespace

std::optional<double> gpu_speed(std::string_view model) {
  const auto* const found = std::ranges::find(kRows, model, &Row::name);
  if (found == kRows.end()) return std::nullopt;
  return std::sqrt(found->tflops * found->gb_s);
}

double speed_ratio(std::string_view model, std::string_view reference) {
  const std::optional<double> one = gpu_speed(model);
  const std::optional<double> other = gpu_speed(reference);
  return one && other ? *one / *other : 1.0;
}

}  // namespace aliquot::replay
