#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  aliquot::cli::Invocation invocation{std::cout, std::cerr, {argv, argv + argc}};
  const int status = aliquot::cli::run_program(invocation);
  // What could not be written was not said.
  return std::cout.flush() ? status : 1;
}
