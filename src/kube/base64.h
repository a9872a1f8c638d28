// Base64 as kubeconfig files and API objects carry it. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace aliquot::kube {

// RFC 4648, with padding; line breaks are skipped.
Result<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace aliquot::kube
