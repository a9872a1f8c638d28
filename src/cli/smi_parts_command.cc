#include "cli/smi_parts_command.h"

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <utility>

#include "cli/smi_parts_view.h"
#include "inventory/bounded_child.h"
#include "inventory/driver_look.h"
#include "inventory/topology_text.h"

namespace aliquot::cli {
namespace {

using Source = std::function<Result<SmiSource>()>;
using Text = Result<std::string>;

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLongForms{
    {{"-lgip", "--list-gpu-instance-profiles"},
     {"-lgi", "--list-gpu-instances"},
     {"-lci", "--list-compute-instances"}}};

Text topology(const SmiSource& source, inventory::Nvml& nvml, const std::vector<unsigned>&) {
  const auto node = topology_of(source, nvml);
  if (!node) return node.error();
  return inventory::print_topology_text(*node);
}

Text nvlinks(const SmiSource&, inventory::Nvml& nvml, const std::vector<unsigned>& gpus) {
  std::string text;
  for (const unsigned gpu : gpus) {
    const auto described = nvml.gpu(gpu);
    if (!described) return described.error();
    const auto links = nvml.nvlinks(gpu);
    if (!links) return links.error();
    text += nvlink_status({gpu, *described, {}, ""}, *links);
  }
  return text;
}

Result<std::vector<SmiMig>> cuts(inventory::Nvml& nvml, const std::vector<unsigned>& gpus) {
  std::vector<SmiMig> all;
  for (const unsigned gpu : gpus) {
    auto mig = nvml.mig(gpu);
    if (!mig) return mig.error();
    all.push_back({gpu, *std::move(mig)});
  }
  return all;
}

template <std::string (*kPrint)(const std::vector<SmiMig>&)>
Text mig(const SmiSource&, inventory::Nvml& nvml, const std::vector<unsigned>& gpus) {
  const auto all = cuts(nvml, gpus);
  if (!all) return all.error();
  return kPrint(*all);
}

// The GPUs asked for by --id, or all.
Result<std::vector<unsigned>> chosen(inventory::Nvml& nvml, const std::vector<unsigned>& ids) {
  const auto count = nvml.count();
  if (!count) return count.error();
  std::vector<unsigned> all = ids;
  if (all.empty())
    for (unsigned gpu = 0; gpu < *count; ++gpu) all.push_back(gpu);
  for (const unsigned gpu : all)
    if (gpu >= *count)
      return Error{Errc::kInvalid, "--id " + std::to_string(gpu) + ": there are GPUs 0 to " +
                                       std::to_string(*count - 1)};
  return all;
}

using Part = Text (*)(const SmiSource&, inventory::Nvml&, const std::vector<unsigned>&);

// A driver that comes up takes seconds.
constexpr Nanoseconds kLimit = 10 * kSecond;

Text text_of(const SmiSource& source, Part part, const std::vector<unsigned>& ids) {
  const auto nvml = inventory::open_nvml(source.libnvidia_ml);
  if (!nvml) return nvml.error();
  const auto gpus = chosen(**nvml, ids);
  if (!gpus) return gpus.error();
  return part(source, **nvml, *gpus);
}

Status show(const Source& source, Part part, const std::vector<unsigned>& ids, std::ostream& out) {
  const auto asked = source();
  if (!asked) return asked.error();
  const Text text = inventory::bounded([&] { return text_of(*asked, part, ids); }, kLimit);
  if (!text && text.error().message == inventory::kNoAnswer)
    return Error{Errc::kUnavailable,
                 "ask the driver: no answer within 10 s; `aliquot smi` says which GPU does not "
                 "answer, -i leaves it out"};
  if (!text) return text.error();
  out << *text;
  return {};
}

struct PartOption {
  const char* name;
  const char* help;
  Part part;
};

// One command of which the options say what to list.
void add_part(CLI::App& smi, Invocation& invocation, const Source& source,
              std::pair<const char*, const char*> command, const std::vector<PartOption>& options) {
  CLI::App* app = smi.add_subcommand(command.first, command.second);
  auto ids = std::make_shared<std::vector<unsigned>>();
  app->add_option("-i,--id", *ids, "Only these GPUs")->delimiter(',')->type_name("GPU,...");
  std::vector<std::pair<CLI::Option*, Part>> given;
  std::string names;
  for (const PartOption& option : options) {
    given.emplace_back(app->add_flag(option.name, option.help), option.part);
    names += (names.empty() ? "" : " or ") + given.back().first->get_name();
  }
  app->callback([=, &invocation] {
    bool listed = false;
    for (const auto& [option, part] : given) {
      if (option->count() == 0) continue;
      listed = true;
      if (const Status shown = show(source, part, *ids, invocation.out); !shown)
        fail(invocation, "smi", shown.error());
    }
    if (!listed) throw CLI::RequiredError(names);
  });
}

}  // namespace

void add_smi_parts(CLI::App& smi, Invocation& invocation, const Source& source) {
  add_part(smi, invocation, source, {"topo", "How the GPUs are connected"},
           {{"-m,--matrix", "As a matrix", &topology}});
  add_part(smi, invocation, source, {"nvlink", "The NVLinks of each GPU"},
           {{"-s,--status", "Their rates, or that they are inactive", &nvlinks}});
  add_part(
      smi, invocation, source, {"mig", "How GPUs are cut into MIG instances"},
      {{"--list-gpu-instance-profiles", "-lgip: what can be made", &mig<&mig_profiles>},
       {"--list-gpu-instances", "-lgi: the GPU instances", &mig<&mig_instances>},
       {"--list-compute-instances", "-lci: the compute instances", &mig<&mig_compute_instances>}});
}

void spell_out_smi_words(std::vector<std::string>& arguments) {
  if (arguments.size() < 3 || arguments[1] != "smi") return;
  for (std::string& word : arguments)
    for (const auto& [letters, words] : kLongForms)
      if (word == letters) word = words;
}

}  // namespace aliquot::cli
