#include "cli/sim_fault_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>

#include "simdriver/faults.h"

namespace aliquot::cli {
namespace {

using simdriver::FaultKind;

constexpr const char* kRemapPending = "pending";
constexpr const char* kRemapFailed = "failed";

struct FaultOptions {
  std::string machine;
  unsigned gpu = 0;
  std::uint64_t xid = 0, ecc_single = 0, ecc_double = 0, link = 0, hang_ms = 0, heat_c = 0;
  bool lost = false, lift = false, through_dlsym = false;
  std::string call, row_remap, link_errors;
  CLI::Option* gpu_given = nullptr;
  CLI::Option* xid_given = nullptr;
  CLI::Option* ecc_single_given = nullptr;
  CLI::Option* ecc_double_given = nullptr;
  CLI::Option* link_given = nullptr;
  CLI::Option* hang_given = nullptr;
  CLI::Option* heat_given = nullptr;
};

// The one fault that was asked for.
std::optional<simdriver::FaultRequest> fault_of(const FaultOptions& options) {
  const unsigned gpu = options.gpu;
  if (options.lift) return simdriver::FaultRequest{gpu, FaultKind::kNone, 0};
  if (options.lost) return simdriver::FaultRequest{gpu, FaultKind::kGpuLost, 0};
  if (options.xid_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kXid, options.xid};
  if (options.ecc_single_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kEccSingle, options.ecc_single};
  if (options.ecc_double_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kEccDouble, options.ecc_double};
  if (options.link_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kLinkDown, std::uint64_t{1} << options.link};
  if (options.hang_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kNvmlHang, options.hang_ms};
  if (options.heat_given->count() > 0)
    return simdriver::FaultRequest{gpu, FaultKind::kHeat, options.heat_c};
  if (!options.row_remap.empty()) {
    const auto what = options.row_remap == kRemapPending ? simdriver::RowRemap::kPending
                                                         : simdriver::RowRemap::kFailed;
    return simdriver::FaultRequest{gpu, FaultKind::kRowRemap, static_cast<std::uint64_t>(what)};
  }
  if (const auto errors = simdriver::link_errors_from(options.link_errors))
    return simdriver::FaultRequest{gpu, FaultKind::kLinkErrors, *errors};
  return std::nullopt;
}

// What concerns the machine as a whole; nothing: a GPU was meant.
std::optional<Status> inject_into_calls(const FaultOptions& options,
                                        const simdriver::RunningMachine& machine) {
  if (!options.call.empty()) return simdriver::fail_call(machine, options.call);
  if (options.through_dlsym) return simdriver::look_up_through_dlsym(machine, true);
  if (options.lift && options.gpu_given->count() == 0) return simdriver::lift_call_faults(machine);
  return std::nullopt;
}

Status inject(const FaultOptions& options) {
  const auto machines = simdriver::list_machines();
  if (!machines) return machines.error();
  const auto found =
      std::ranges::find(*machines, options.machine, &simdriver::RunningMachine::name);
  if (found == machines->end())
    return Error{Errc::kNotFound, "no simulated machine " + options.machine +
                                      " runs; `aliquot sim list` shows those that do"};
  if (const auto done = inject_into_calls(options, *found)) return *done;
  const auto fault = fault_of(options);
  if (!fault)
    return Error{Errc::kInvalid,
                 "which fault? of a GPU: --xid, --lost, --ecc-single, --ecc-double, --link-down, "
                 "--link-errors, --row-remap, --nvml-hang, --temperature; of the machine: --fail, "
                 "--dlsym; or --lift"};
  if (options.gpu_given->count() == 0) return Error{Errc::kInvalid, "which GPU? give --gpu INDEX"};
  return simdriver::inject_fault(*found, *fault);
}

}  // namespace

void add_sim_fault(CLI::App& sim, Invocation& invocation) {
  CLI::App* fault = sim.add_subcommand("fault", "Break or mend a part of a simulated machine");
  auto options = std::make_shared<FaultOptions>();
  fault->add_option("name", options->machine, "The machine's name")
      ->type_name("MACHINE")
      ->required();
  options->gpu_given = fault->add_option("--gpu", options->gpu, "Index of the GPU");
  CLI::Option_group* kinds = fault->add_option_group("faults");
  kinds->require_option(0, 1);
  options->xid_given = kinds->add_option("--xid", options->xid, "Report this XID");
  kinds->add_flag("--lost", options->lost, "The GPU falls off the bus (XID 79)");
  options->ecc_single_given =
      kinds->add_option("--ecc-single", options->ecc_single, "So many corrected ECC errors");
  options->ecc_double_given =
      kinds->add_option("--ecc-double", options->ecc_double, "So many uncorrected ECC errors");
  options->link_given = kinds->add_option("--link-down", options->link, "This NVLink goes down")
                            ->check(CLI::Range(0, 31));
  kinds
      ->add_option("--link-errors", options->link_errors,
                   "So many more errors of an NVLink (without LINK: of the first)")
      ->type_name("[LINK:]COUNT")
      ->check([](const std::string& order) {
        return simdriver::link_errors_from(order) ? "" : "expected COUNT or LINK:COUNT: " + order;
      });
  kinds
      ->add_option("--row-remap", options->row_remap,
                   "A row of memory waits for a reset to be replaced, or could not be")
      ->check(CLI::IsMember({kRemapPending, kRemapFailed}));
  options->hang_given = kinds->add_option("--nvml-hang", options->hang_ms,
                                          "NVML answers so many milliseconds late (0: no more)");
  options->heat_given = kinds->add_option("--temperature", options->heat_c,
                                          "The chip is so hot, in degrees Celsius (0: no more)");
  kinds->add_option("--fail", options->call, "This call of the driver API fails, in each process")
      ->type_name("SYMBOL[:NTH][=RESULT]");
  kinds->add_flag("--dlsym", options->through_dlsym,
                  "The driver finds its own functions through dlsym, as that of WSL does");
  kinds->add_flag("--lift", options->lift,
                  "Lift all faults of the GPU; without --gpu, --fail and --dlsym");
  fault->callback([options, &invocation] {
    if (const Status done = inject(*options); !done) fail(invocation, "sim fault", done.error());
  });
}

}  // namespace aliquot::cli
