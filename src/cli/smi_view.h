// What `aliquot smi` prints, from what NVML said. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"
#include "common/result.h"
#include "inventory/driver_look.h"

namespace aliquot::cli {

using SmiGpu = inventory::GpuAnswer;

struct SmiMachine {
  inventory::NvmlSystem system;
  std::string title;  // which driver it is; says "simulated" where it is
  std::vector<SmiGpu> gpus;
  std::vector<broker::LeaseRow> leases = {};  // that have parts of them; none seen from inside one
};

// The table for people; at most 80 columns.
std::string smi_table(const SmiMachine& machine);

// `-L`: one line per GPU.
std::string smi_list(const SmiMachine& machine);

std::string smi_json(const SmiMachine& machine);

struct CsvFormat {
  bool header = true;
  bool units = true;
};

// "csv", "csv,noheader", "csv,noheader,nounits".
Result<CsvFormat> parse_csv_format(const std::string& text);

// `--query-gpu`: fields as nvidia-smi names them, comma-separated. An unknown field is an error
// that names it; a figure that the GPU does not have is "[N/A]".
Result<std::string> smi_query(const SmiMachine& machine, const std::string& fields,
                              const CsvFormat& format);

// Every field that smi_query knows, sorted.
std::vector<std::string> smi_fields();

}  // namespace aliquot::cli
