# Verbs for every room: a library with what it may lean on, its tests, its fuzzers.

add_library(aliquot_flags INTERFACE)
target_compile_features(aliquot_flags INTERFACE cxx_std_20)
target_compile_options(aliquot_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -mcx16
  # g++ 12 takes string + string for an overlapping copy (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # The driver's structures are C's; in a stable_sort clang sees what libstdc++ has deprecated.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-nested-anon-types -Wno-gnu-anonymous-struct
                             -Wno-deprecated-declarations>)
target_include_directories(aliquot_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)

set(aliquot_library_properties POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                               VISIBILITY_INLINES_HIDDEN ON)

add_custom_target(threads_tests)  # all that tsan builds
add_custom_target(system_tests)   # all that the tests labelled system or no_sanitizer run
add_custom_target(fuzzers)        # all that the fuzz preset is for

option(ALIQUOT_SANITIZED "built by clang for a sanitizer" OFF)
include(aliquot_precompiled)

# aliquot_library(<name> [OPTIMIZED] SOURCES ... DEPENDS ...): OPTIMIZED in every preset, where tests
# run it by the million.
function(aliquot_library name)
  cmake_parse_arguments(arg "OPTIMIZED" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC aliquot_flags ${arg_DEPENDS})
  set_target_properties(${name} PROPERTIES ${aliquot_library_properties})
  if(arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O2)
  else()
    aliquot_precompiled(${name} libraries)
  endif()
endfunction()

# aliquot_closed(<library>): a shared library that lacks a name fails to link. A sanitizer's names are
# the program's.
function(aliquot_closed name)
  if(NOT ALIQUOT_SANITIZED)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# aliquot_test(<name> DEPENDS ... [LABELS threads|long|gpu|system|no_sanitizer ...] [TIMEOUT seconds]):
# <name>.cc lies next to what it tests. One binary is one ctest. `make test` runs it under asan and
# ubsan, unless its label says otherwise:
#   threads  under tsan too             long  only in `make test-long`
#   gpu      against a real driver      system, no_sanitizer  in the release build only
function(aliquot_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "DEPENDS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE aliquot_flags ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE ALIQUOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  aliquot_precompiled(${name} tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
  if("system" IN_LIST arg_LABELS OR "no_sanitizer" IN_LIST arg_LABELS)
    add_dependencies(system_tests ${name})
  endif()
endfunction()

# aliquot_fuzzer(<name> DEPENDS ...): <name>.cc defines LLVMFuzzerTestOneInput. Built under the
# fuzz preset only (clang); `make fuzz` runs each for a minute.
function(aliquot_fuzzer name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  if(NOT ALIQUOT_FUZZ)
    return()
  endif()
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE aliquot_flags ${arg_DEPENDS})
  add_dependencies(fuzzers ${name})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()
