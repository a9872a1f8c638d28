#include "cli/smi_parts_view.h"

#include <fmt/format.h>

#include <string_view>

namespace aliquot::cli {
namespace {

using inventory::NvmlMigInstance;
using inventory::NvmlMigProfile;

constexpr const char* kNoMig = "No MIG-enabled devices found.\n";

// A box of lines, all as wide as the first.
class Box {
 public:
  explicit Box(std::size_t width) : width_(width) { rule('-'); }
  void rule(char fill) {
    const char end = fill == '=' ? '|' : '+';
    text_ += end + std::string(width_, fill) + end + '\n';
  }
  void line(std::string_view words) { text_ += fmt::format("|{:<{}}|\n", words, width_); }
  std::string text() const { return text_; }

 private:
  std::size_t width_;
  std::string text_;
};

std::string gibibytes(std::uint64_t mib) {
  return fmt::format("{:.2f}", static_cast<double>(mib) / 1024);
}

bool any_on(const std::vector<SmiMig>& gpus) {
  for (const SmiMig& gpu : gpus)
    if (gpu.mig.on) return true;
  return false;
}

}  // namespace

std::string nvlink_status(const SmiGpu& gpu, const std::vector<inventory::NvmlNvlink>& links) {
  if (links.empty()) return {};
  std::string text = fmt::format("GPU {}: {} (UUID: {})\n", gpu.index, gpu.gpu.name, gpu.gpu.uuid);
  for (const inventory::NvmlNvlink& link : links) {
    const double rate = link.mb_per_s / 1000.0;
    text += link.active ? fmt::format("\t Link {}: {:g} GB/s\n", link.link, rate)
                        : fmt::format("\t Link {}: <inactive>\n", link.link);
  }
  return text;
}

std::string mig_profiles(const std::vector<SmiMig>& gpus) {
  Box box(79);
  box.line(" GPU instance profiles:");
  box.line(" GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC");
  box.line("                              Free/Total   GiB              CE    JPEG  OFA");
  box.rule('=');
  bool listed = false;
  for (const SmiMig& gpu : gpus)
    for (const NvmlMigProfile& profile : gpu.mig.profiles) {
      listed = true;
      box.line(fmt::format(
          " {:>3}  {:<17} {:>2}   {:>3}/{:<3}    {:>7}      {:<3}  {:>4}  {:>5} {:>5}", gpu.index,
          profile.name, profile.id, profile.free, profile.total, gibibytes(profile.memory_mib),
          profile.p2p ? "Yes" : "No", profile.multiprocessors, profile.decoders, profile.encoders));
      box.line(fmt::format("{:>61} {:>6} {:>5}", profile.copy_engines, profile.jpeg_engines,
                           profile.ofa_engines));
      box.rule('-');
    }
  return listed ? box.text() : "No MIG-supported devices found.\n";
}

std::string mig_instances(const std::vector<SmiMig>& gpus) {
  if (!any_on(gpus)) return kNoMig;
  Box box(57);
  box.line(" GPU instances:");
  box.line(" GPU   Name               Profile  Instance   Placement");
  box.line("                            ID       ID       Start:Size");
  box.rule('=');
  bool listed = false;
  for (const SmiMig& gpu : gpus)
    for (const NvmlMigInstance& instance : gpu.mig.instances) {
      listed = true;
      box.line(fmt::format(" {:>3}  {:<20} {:>4} {:>8} {:>10}:{}", gpu.index, instance.name,
                           instance.profile, instance.gpu_instance, instance.start, instance.size));
      box.rule('-');
    }
  return listed ? box.text() : "No GPU instances found: Not Found\n";
}

std::string mig_compute_instances(const std::vector<SmiMig>& gpus) {
  if (!any_on(gpus)) return kNoMig;
  Box box(70);
  box.line(" Compute instances:");
  box.line(" GPU     GPU       Name               Profile   Instance   Placement");
  box.line("       Instance                         ID        ID       Start:Size");
  box.line("         ID");
  box.rule('=');
  bool listed = false;
  for (const SmiMig& gpu : gpus)
    for (const NvmlMigInstance& instance : gpu.mig.compute_instances) {
      listed = true;
      box.line(fmt::format(" {:>3}     {:>2}       {:<18} {:>4} {:>9} {:>11}:{}", gpu.index,
                           instance.gpu_instance, instance.name, instance.profile,
                           instance.compute_instance.value_or(0), instance.start, instance.size));
      box.rule('-');
    }
  return listed ? box.text() : "No compute instances found: Not Found\n";
}

}  // namespace aliquot::cli
