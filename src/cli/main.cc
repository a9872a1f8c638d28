#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  aliquot::cli::Invocation invocation{std::cout, std::cerr, {argv, argv + argc}};
  return aliquot::cli::run_program(invocation);
}
