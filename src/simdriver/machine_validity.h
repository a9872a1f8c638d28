// What a model or machine must fulfil beside having all its keys. Any thread.
#pragma once

#include <string_view>

#include "common/result.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

constexpr std::size_t kMostGpus = 64;

// `where` names the text in the error.
Status check_model(const GpuModel& model, std::string_view where);
Status check_machine(const MachineSpec& machine, std::string_view where);

}  // namespace aliquot::simdriver
