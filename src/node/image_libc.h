// Whether a container's image can load our library: it is for glibc, and an image without glibc's
// loader (musl, or one static program) has nothing that could load it, nor NVIDIA's driver.
//
// Looked up inside the image's root file system as it would be from within: its links never lead
// out of it. Pure but for reading; any thread.
#pragma once

#include <filesystem>
#include <string>

namespace aliquot::node {

enum class ImageLibc { kGlibc, kOther, kUnknown };  // kUnknown: it could not be looked at

ImageLibc libc_of(const std::filesystem::path& root);

// Of a container that the runtime is about to start: its root by the bundle in the state that an
// OCI runtime gives its hooks. Empty: that cannot be told.
std::filesystem::path root_of_state(const std::string& state_json);

}  // namespace aliquot::node
