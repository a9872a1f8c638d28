// Which driver a command meets: a simulated machine or the real one. One rule for every program.
//
//   1. the machine named on the command line        2. the machine named by ALIQUOT_SIM
//   3. a real driver whose NVML initialises         4. the only running simulated machine
//   5. else an error that lists what there is
//
// Leaves to others: starting a machine from a preset (cli), using the driver. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace aliquot::inventory {

struct Driver {
  std::string name;                         // "nvidia" or "sim:NAME"; what the broker is told
  std::filesystem::path machine_directory;  // of a simulated machine; empty for the real driver
  std::filesystem::path libcuda;            // absolute
  std::filesystem::path libnvidia_ml;       // absolute

  bool operator==(const Driver&) const = default;
  bool simulated() const { return !machine_directory.empty(); }
  // "simulated machine NAME" or "the NVIDIA driver", as programs say once which it is.
  std::string title() const;
};

struct DriverQuestion {
  std::filesystem::path state_directory;
  std::string named;              // --sim; empty: not given
  std::string named_environment;  // ALIQUOT_SIM; empty: not set
  // The real driver if its NVML initialises; asked only when nothing is named.
  std::function<std::optional<Driver>()> find_real;
};

// Errc::kNotFound: the machine named on the command line does not run (it may be a preset).
Result<Driver> choose_driver(const DriverQuestion& question);

// The driver called `name` ("nvidia", "sim:NAME"), as the broker is told it by others.
Result<Driver> driver_called(const std::string& name, const DriverQuestion& question);

// Names of the simulated machines whose server answers, sorted.
std::vector<std::string> running_machines(const std::filesystem::path& state_directory);

// A driver as one line of JSON: what the daemon keeps, and tells programs of other users that ask
// whether it serves theirs (docs/formats/node_state.md).
std::string driver_text(const Driver& driver);
Result<Driver> parse_driver(std::string_view text, std::string_view where);

// Loads libnvidia-ml.so.1 and libcuda.so.1 as the loader finds them and tries nvmlInit.
std::optional<Driver> find_real_driver();

}  // namespace aliquot::inventory
