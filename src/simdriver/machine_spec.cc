#include "simdriver/machine_spec.h"

#include <cstdio>

namespace aliquot::simdriver {
namespace {

struct KnownDriver {
  const char* cuda;
  DriverVersion version;
};

// The driver that NVIDIA released with each CUDA version.
const std::array<KnownDriver, 4>& all_drivers() {
  static const std::array<KnownDriver, 4> kDrivers{{
      {"11.8", {11080, "520.61.05", "11.520.61.05"}},
      {"12.4", {12040, "550.54.15", "12.550.54.15"}},
      {"12.9", {12090, "575.57.08", "12.575.57.08"}},
      {"13.0", {13000, "580.65.06", "13.580.65.06"}},
  }};
  return kDrivers;
}

}  // namespace

bool remaps_rows(const GpuModel& model) {
  return model.ecc && model.architecture >= Architecture::kAmpere;
}

unsigned memory_banks(const GpuModel& model) { return model.memory.bus_bits / 8; }

std::string PciAddress::text() const {
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%08X:%02X:%02X.0", domain, bus, device);
  return out.data();
}

std::string gpu_uuid_text(const Uuid& uuid) {
  std::string out = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex.data();
  }
  return out;
}

const DriverVersion* driver_for(const std::string& cuda) {
  for (const KnownDriver& known : all_drivers())
    if (cuda == known.cuda) return &known.version;
  return nullptr;
}

std::string known_drivers() {
  std::string all;
  for (const KnownDriver& known : all_drivers()) {
    if (!all.empty()) all += ", ";
    all += known.cuda;
  }
  return all;
}

}  // namespace aliquot::simdriver
