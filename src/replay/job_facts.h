// What is known of the training jobs that public traces name: how fast a step is, how much of a GPU
// it uses, what it reduces. A trace tells steps; only with these does it tell time.
//
// Sources:
//   Philly-derived traces (Gavel, OSDI 2020): its measured steps a second on one V100, alone and
//     with a second job of the same kind on the same GPU. The use of a GPU is 1 / (2 r), where r is
//     the speed that each of the two keeps; at most 1. A job that does not fit twice counts as 1.
//   Pollux workloads (OSDI 2021): its measured step times on one T4 for several local batch sizes,
//     as a line fitted here; samples and epochs of each application as its simulator has them.
//   What a step reduces is the model's parameters in 4 bytes each, as usually published; for A3C,
//     DeepSpeech2, NCF and the recommender it is a guess from the architecture or from measured
//     synchronisation times.
//
// Values; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace aliquot::replay {

struct PhillyModel {
  std::string_view name;
  double steps_per_s = 0;  // on one V100
  int used_milli = 0;      // of a V100
  double reduced_mb = 0;   // for each step, 10^6 bytes
};
std::span<const PhillyModel> philly_models();
inline constexpr std::string_view kPhillyGpu = "V100";

struct PolluxApp {
  std::string_view name;
  double samples = 0;  // of all epochs together
  double step_s = 0;   // a step takes step_s + sample_s x samples of one GPU, on one T4
  double sample_s = 0;
  double reduced_mb = 0;
};
std::span<const PolluxApp> pollux_apps();
inline constexpr std::string_view kPolluxGpu = "T4";

}  // namespace aliquot::replay
