// A MachineSpec as JSON text and back (docs/formats/machine.md). Strict: an unknown key, a doubled
// one or a value out of range is an error that names the file and the key. Any thread.
#pragma once

#include <functional>
#include <string_view>

#include "common/result.h"
#include "format/json.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

// Where a machine's text names a model that it does not carry itself.
using ModelLookup = std::function<Result<GpuModel>(std::string_view name)>;

Result<MachineSpec> machine_from_json(const format::Json& json, std::string_view where,
                                      const ModelLookup& models);
Result<GpuModel> model_from_json(const format::Json& json, std::string_view where);

// Complete: carries its models, so that machine_from_json needs no look-up.
format::Json to_json(const MachineSpec& machine);
format::Json to_json(const GpuModel& model);

}  // namespace aliquot::simdriver
