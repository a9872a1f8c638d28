// The words and numbers of a machine's text: enums, addresses, identifiers. to_text gives what
// from_text takes; from_text is false, and its output unspecified, for anything else. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

// A 32-bit number written in hexadecimal ("0x20b210de").
struct Hex {
  std::uint32_t& value;
};

std::string to_text(const Hex& hex);
std::string to_text(Brand brand);
std::string to_text(Architecture architecture);
std::string to_text(PciePath path);  // "X", "PIX", "PXB", "PHB", "NODE", "SYS"
std::string to_text(const ComputeCapability& capability);  // "8.0"
std::string cuda_text(const DriverVersion& driver);        // "13.0"

bool from_text(std::string_view text, Hex hex);
bool from_text(std::string_view text, Brand& brand);
bool from_text(std::string_view text, Architecture& architecture);
bool from_text(std::string_view text, PciePath& path);
bool from_text(std::string_view text, ComputeCapability& capability);
bool from_text(std::string_view text, PciAddress& address);  // "0000:07:00.0", 4 or 8 digits first
bool from_text(std::string_view text, Uuid& uuid);           // "GPU-..."

}  // namespace aliquot::simdriver
