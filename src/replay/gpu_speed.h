// How fast GPU models are against each other, to convert a run time measured on one to another.
//
// The speed of a model is the geometric mean of its dense FP16 rate and its memory bandwidth, both
// from its maker's data sheet: half of a training step is taken to be bound by the one, half by the
// other. For V100 against P100 that is 2.7; Gavel (OSDI 2020) measured 1.6 to 2.7 over its models.
// It is one figure for all programs, so no figure for any of them.
//
// Values; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace aliquot::replay {

// By exact name, as traces, node lists and presets write it. Nothing where it is not known.
std::optional<double> gpu_speed(std::string_view model);

// Seconds on `reference` that one second on `model` is worth; 1 where either is not known.
double speed_ratio(std::string_view model, std::string_view reference);

}  // namespace aliquot::replay
