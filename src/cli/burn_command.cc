#include "cli/burn_command.h"

#include <memory>
#include <ostream>

#include "cli/burn_load.h"
#include "cli/surroundings.h"
#include "format/json.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

struct BurnOptions {
  std::string sim, memory, chunk = "64MiB", mix;
  double kernel_us = 0;
  double seconds = 0;
  BurnRequest request;
};

Result<std::uint64_t> plain_bytes(const std::string& text) {
  const auto memory = model::parse_memory(text);
  if (!memory) return memory.error();
  if (memory->kind != model::MemoryQuantity::Kind::kBytes)
    return Error{Errc::kInvalid, "memory \"" + text + "\": give an amount here"};
  return memory->value;
}

// Inside a lease the share; outside, the driver that every command meets.
Result<std::filesystem::path> libcuda(const std::string& sim) {
  if (inside_lease()) return share_library("libcuda.so.1");
  const auto driver = inventory::choose_driver(driver_question(sim));
  if (!driver) return driver.error();
  return driver->libcuda;
}

Status run_burn(BurnOptions& options, std::ostream& out) {
  if (!options.memory.empty()) {
    const auto memory = plain_bytes(options.memory);
    if (!memory) return memory.error();
    options.request.memory_bytes = *memory;
  }
  const auto chunk = plain_bytes(options.chunk);
  if (!chunk) return chunk.error();
  options.request.chunk_bytes = *chunk;
  options.request.kernel = static_cast<Nanoseconds>(options.kernel_us * kMicrosecond);
  options.request.duration = static_cast<Nanoseconds>(options.seconds * kSecond);
  if (options.request.depth > 0) {
    const auto mix =
        parse_mix(options.mix.empty() ? std::to_string(options.kernel_us) + "us" : options.mix);
    if (!mix) return mix.error();
    options.request.mix = *mix;
  }
  const auto library = libcuda(options.sim);
  if (!library) return library.error();
  options.request.libcuda = library->string();
  const auto report = burn(options.request, MonotonicClock());
  if (!report) return report.error();
  out << format::Json::object()
             .set("gpu", report->gpu_name)
             .set("total_bytes", report->total_bytes)
             .set("free_bytes", report->free_bytes)
             .set("held_bytes", report->held_bytes)
             .set("free_bytes_while_held", report->free_bytes_while_held)
             .set("refusal", report->refusal.empty() ? format::Json() : report->refusal)
             .set("kernels", report->kernels)
             .set("kernel_seconds", static_cast<double>(report->kernel_time) / kSecond)
             .dump()
      << std::endl;  // NOLINT(performance-avoid-endl): somebody waits for this line
  return {};
}

}  // namespace

void add_burn_command(CLI::App& app, Invocation& invocation) {
  CLI::App* burn = app.add_subcommand("burn", "Put a load on a GPU; prints what it met as JSON");
  auto options = std::make_shared<BurnOptions>();
  burn->add_option("--sim", options->sim, "Running simulated machine (outside a lease)")
      ->type_name("MACHINE");
  burn->add_option("--gpu", options->request.gpu, "GPU index")->capture_default_str();
  burn->add_option("--memory", options->memory, "Take so much, until refused")->type_name("QTY");
  burn->add_option("--chunk", options->chunk, "In allocations of")->capture_default_str();
  burn->add_option("--kernel-us", options->kernel_us, "Launch kernels of so many microseconds")
      ->check(CLI::Range(0.0, 1e7));
  CLI::Option* mix = burn->add_option("--kernels", options->mix,
                                      "Kernels of several lengths: 50us:0.7,5ms:0.3, pareto:300us")
                         ->type_name("MIX");
  CLI::Option* depth = burn->add_option("--depth", options->request.depth,
                                        "Keep so many launches queued on each stream")
                           ->check(CLI::Range(1, 10000));
  mix->needs(depth);
  burn->add_option("--seed", options->request.seed, "Of what is drawn")->capture_default_str();
  burn->add_option("--streams", options->request.streams, "On so many streams")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  burn->add_option("--graph", options->request.graph_nodes, "As graphs of so many kernels")
      ->check(CLI::Range(0, 10000));
  burn->add_option("--seconds", options->seconds, "Hold the memory, and launch, for so long")
      ->check(CLI::Range(0.0, 86400.0));
  burn->callback([options, &invocation] {
    if (const Status done = run_burn(*options, invocation.out); !done)
      fail(invocation, "burn", done.error());
  });
}

}  // namespace aliquot::cli
