// `aliquot inventory`: what this machine has: GPUs, NICs, NUMA, and how near they are.
#pragma once

#include <string>

#include "cli/command.h"
#include "inventory/document.h"

namespace aliquot::cli {

void add_inventory_command(CLI::App& app, Invocation& invocation);

// The document as lines and tables for people.
std::string inventory_text(const inventory::Inventory& inventory, const std::string& source);

}  // namespace aliquot::cli
