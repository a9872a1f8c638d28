// What a command of `aliquot` is: it adds itself to the parser and answers with an exit status.
//
// Leaves to others: parsing (CLI11, seen by the command files only), what the rooms do. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace aliquot::cli {

inline constexpr int kUsageError = 2;

// What one invocation works with; built by main, alive while it runs.
struct Invocation {
  std::ostream& out;
  std::ostream& err;
  std::vector<std::string> arguments;  // argv; [0] is the program's own path
  int status = 0;                      // the exit status, set by the command that ran
};

// A command registers its subcommand, options and callback; the callback runs after parsing.
using AddCommand = void (*)(CLI::App& app, Invocation& invocation);

// Says "aliquot COMMAND: message" and makes the invocation fail with status 1.
void fail(Invocation& invocation, std::string_view command, const Error& error);

}  // namespace aliquot::cli
