// YAML text to the same Json value as parse_json gives: one document, its tags resolved as in
// YAML 1.2's core schema (null, true, 12, 1.5; what is quoted is a string). For configuration and
// kubeconfig files that their owner wrote; YAML is never printed.
//
// The parser library is seen by yaml.cc alone. Pure function; any thread.
#pragma once

#include <string_view>

#include "common/result.h"
#include "format/json.h"

namespace aliquot::format {

// `where` names the text in errors, which read "where:line:column: what". Refused: a key given
// twice, keys that are no scalars, more than 64 levels, more than 100,000 values (aliases count
// each time), a second document.
Result<Json> parse_yaml(std::string_view text, std::string_view where);

}  // namespace aliquot::format
