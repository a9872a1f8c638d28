#include "replay/job_facts.h"

#include <array>

namespace aliquot::replay {
namespace {

constexpr std::array kPhilly{
    PhillyModel{"ResNet-18 (batch size 16)", 77.317, 697, 45},
    PhillyModel{"ResNet-18 (batch size 32)", 65.805, 763, 45},
    PhillyModel{"ResNet-18 (batch size 64)", 48.884, 830, 45},
    PhillyModel{"ResNet-18 (batch size 128)", 30.288, 866, 45},
    PhillyModel{"ResNet-18 (batch size 256)", 16.987, 1000, 45},
    PhillyModel{"ResNet-50 (batch size 16)", 17.374, 909, 102},
    PhillyModel{"ResNet-50 (batch size 32)", 9.921, 944, 102},
    PhillyModel{"ResNet-50 (batch size 64)", 5.458, 1000, 102},
    PhillyModel{"ResNet-50 (batch size 128)", 2.846, 1000, 102},
    PhillyModel{"Transformer (batch size 16)", 12.846, 519, 196},
    PhillyModel{"Transformer (batch size 32)", 12.475, 586, 196},
    PhillyModel{"Transformer (batch size 64)", 9.568, 708, 196},
    PhillyModel{"Transformer (batch size 128)", 5.771, 761, 196},
    PhillyModel{"Transformer (batch size 256)", 1.707, 1000, 196},
    PhillyModel{"LM (batch size 5)", 167.12, 735, 56},
    PhillyModel{"LM (batch size 10)", 143.36, 773, 56},
    PhillyModel{"LM (batch size 20)", 107.95, 825, 56},
    PhillyModel{"LM (batch size 40)", 71.723, 862, 56},
    PhillyModel{"LM (batch size 80)", 43.904, 920, 56},
    PhillyModel{"Recommendation (batch size 512)", 0.33148, 781, 32},
    PhillyModel{"Recommendation (batch size 1024)", 0.47998, 766, 32},
    PhillyModel{"Recommendation (batch size 2048)", 0.56753, 699, 32},
    PhillyModel{"Recommendation (batch size 4096)", 0.62441, 699, 32},
    PhillyModel{"Recommendation (batch size 8192)", 0.60235, 1000, 32},
    PhillyModel{"CycleGAN", 4.9185, 818, 113},
    PhillyModel{"A3C", 8.2330, 696, 5},
};

constexpr std::array kPollux{
    PolluxApp{"cifar10", 100.0 * 50'000, 0.0215, 0.000665, 45},
    PolluxApp{"imagenet", 90.0 * 1'281'167, 0.0612, 0.004312, 102},
    PolluxApp{"yolov3", 50.0 * 16'551, 0.165, 0.0255, 248},
    PolluxApp{"bert", 2.0 * 88'644, 0.222, 0.0583, 440},
    PolluxApp{"deepspeech2", 80.0 * 7'134, 0.248, 0.0218, 120},
    PolluxApp{"ncf", 10.0 * 4'970'854, 0.00733, 0.000000426, 7},
};

}  // namespace

std::span<const PhillyModel> philly_models() { return kPhilly; }
std::span<const PolluxApp> pollux_apps() { return kPollux; }

}  // namespace aliquot::replay
