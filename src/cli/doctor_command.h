// `aliquot doctor`: what is wrong with this machine for sharing GPUs, with evidence and a remedy.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "format/json.h"
#include "inventory/doctor.h"

namespace aliquot::cli {

void add_doctor_command(CLI::App& app, Invocation& invocation);

// For people: a line for each finding, its evidence and remedy below; one line when there is none.
std::string doctor_text(const std::vector<inventory::Finding>& findings, const std::string& source);
std::string finding_text(const inventory::Finding& finding);
format::Json finding_json(const inventory::Finding& finding);
std::string doctor_json(const std::vector<inventory::Finding>& findings, const std::string& source,
                        bool simulated);

}  // namespace aliquot::cli
