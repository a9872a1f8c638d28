# What most files include, read once a preset instead of once a file: half the time of a build for a
# sanitizer. Not in dev and release, which show that a file includes what it uses.
set(precompiled_for_libraries
    <algorithm> <array> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional>
    <set> <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
set(precompiled_for_tests ${precompiled_for_libraries} <gmock/gmock.h> <gtest/gtest.h>)
if(ALIQUOT_SANITIZED)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
  foreach(kind libraries tests)
    add_library(precompiled_for_${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(precompiled_for_${kind} PRIVATE aliquot_flags)
    # ccache goes by what the header holds.
    target_compile_options(precompiled_for_${kind} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    target_precompile_headers(precompiled_for_${kind} PRIVATE ${precompiled_for_${kind}})
  endforeach()
  target_link_libraries(precompiled_for_tests PRIVATE GTest::gmock)
  set_target_properties(precompiled_for_libraries PROPERTIES ${aliquot_library_properties})
endif()

# aliquot_precompiled(<target> libraries|tests): what is compiled with the flags of all others.
function(aliquot_precompiled target kind)
  if(ALIQUOT_SANITIZED)
    target_precompile_headers(${target} REUSE_FROM precompiled_for_${kind})
  endif()
endfunction()
