#include "cli/abi_command.h"

#include <memory>
#include <ostream>

#include "cli/table.h"
#include "driver_abi/coverage.h"
#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"
#include "format/json.h"

namespace aliquot::cli {
namespace {

using driver_abi::Entry;
using format::Json;

struct Library {
  std::string_view name;
  std::span<const Entry> entries;
};

std::array<Library, 2> libraries() {
  return {{{"CUDA driver", driver_abi::kCudaEntries}, {"NVML", driver_abi::kNvmlEntries}}};
}

std::string version_text(int version) {
  return version == 0 ? "-"
                      : std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

std::string as_json() {
  Json all = Json::object();
  for (const Library& library : libraries()) {
    const auto coverage = driver_abi::coverage_of(library.entries);
    Json rows = Json::array();
    for (const Entry& entry : library.entries)
      rows.append(Json::object()
                      .set("symbol", entry.symbol)
                      .set("since", entry.since)
                      .set("until", entry.until)
                      .set("kind", driver_abi::to_string(entry.kind)));
    all.set(library.name, Json::object()
                              .set("total", std::uint64_t{coverage.total})
                              .set("pass", std::uint64_t{coverage.pass})
                              .set("guard", std::uint64_t{coverage.guard})
                              .set("deny", std::uint64_t{coverage.deny})
                              .set("entries", rows));
  }
  return all.dump(2);
}

std::string as_table(bool every_row) {
  const auto right = Table::Align::kRight;
  Table sums({{"LIBRARY"}, {"SYMBOLS", right}, {"PASS", right}, {"GUARD", right}, {"DENY", right}});
  Table rows({{"SYMBOL"}, {"SINCE", right}, {"UNTIL", right}, {"KIND"}});
  for (const Library& library : libraries()) {
    const auto coverage = driver_abi::coverage_of(library.entries);
    sums.add({std::string(library.name), std::to_string(coverage.total),
              std::to_string(coverage.pass), std::to_string(coverage.guard),
              std::to_string(coverage.deny)});
    for (const Entry& entry : library.entries)
      rows.add({std::string(entry.symbol), version_text(entry.since), version_text(entry.until),
                std::string(driver_abi::to_string(entry.kind))});
  }
  return every_row ? rows.text() + '\n' + sums.text() : sums.text();
}

}  // namespace

void add_abi_command(CLI::App& app, Invocation& invocation) {
  CLI::App* abi = app.add_subcommand("abi", "Show which driver entry points a share guards");
  auto json = std::make_shared<bool>(false);
  auto rows = std::make_shared<bool>(false);
  abi->add_flag("--json", *json, "As JSON, with every entry point");
  abi->add_flag("--rows", *rows, "Every entry point");
  abi->callback([json, rows, &invocation] {
    invocation.out << (*json ? as_json() + '\n' : as_table(*rows));
  });
}

}  // namespace aliquot::cli
