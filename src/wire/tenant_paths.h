// Where a tenant finds what is ours, in `aliquot run`'s namespace and in a container alike.
//
//   lease/   its lease directory          lib/   libaliquot.so under every driver name
//   driver/  the driver behind it, by other names so that no search path finds it
//
// Constants; any thread.
#pragma once

namespace aliquot::wire {

inline constexpr const char* kTenantRoot = "/run/aliquot";
inline constexpr const char* kTenantLease = "/run/aliquot/lease";
inline constexpr const char* kTenantLibraries = "/run/aliquot/lib";
inline constexpr const char* kTenantLibrary = "/run/aliquot/lib/libaliquot.so";
inline constexpr const char* kTenantDriver = "/run/aliquot/driver";
inline constexpr const char* kTenantLibcuda = "/run/aliquot/driver/behind/cuda";
inline constexpr const char* kTenantLibnvidiaMl = "/run/aliquot/driver/behind/nvidia-ml";

// Every name under which a program asks for the driver.
inline constexpr const char* kDriverNames[] = {"libcuda.so", "libcuda.so.1", "libnvidia-ml.so",
                                               "libnvidia-ml.so.1"};

}  // namespace aliquot::wire
