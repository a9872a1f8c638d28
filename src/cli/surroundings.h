// Where this program stands: its libraries, the driver it meets, the broker of its state directory.
// What run, ps, smi, share and sim have in common. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "broker/client.h"
#include "common/result.h"
#include "inventory/driver_choice.h"

namespace aliquot::cli {

// ../lib/aliquot beside the running program: libaliquot.so, names/, sim/.
Result<std::filesystem::path> library_directory();

// The running program's own path.
Result<std::filesystem::path> own_program();

// The question that choose_driver answers, for the machine named by --sim (may be empty).
inventory::DriverQuestion driver_question(const std::string& named);

// Whether this process runs inside a lease; then it sees its share and may not make another.
bool inside_lease();

// Inside a lease: the library under one of the driver's names, by its absolute path.
Result<std::filesystem::path> share_library(const char* name);
// Inside a lease: its NVML, and what programs call it ("share of a simulated machine").
struct ShareDriver {
  std::filesystem::path libnvidia_ml;
  bool simulated = false;
  std::string title() const { return simulated ? "share of a simulated machine" : "share"; }
};
Result<ShareDriver> share_driver();

// The driver that the machine's daemon serves; nullopt: no daemon is there.
std::optional<inventory::Driver> daemon_driver();

// The machine's daemon where it answers and serves this very driver, else the broker of this user,
// started when there is none.
Result<broker::Client> broker_for(const inventory::Driver& driver);

// The daemon and this user's broker, those that answer.
std::vector<broker::Client> running_brokers();

// The one of them that has the lease.
Result<broker::Client> broker_of_lease(const std::string& lease);

// "pod/NAMESPACE/NAME" or "pod/NAMESPACE/NAME/CONTAINER": the leases of its containers on this
// node, as the daemon tells them. Anything else is the name of a lease.
Result<std::vector<std::string>> leases_called(const std::string& text);

// The broker of this user, started when there is none.
Result<broker::Client> broker_client();

// The broker of this user if one runs; Errc::kUnavailable otherwise.
Result<broker::Client> running_broker();

}  // namespace aliquot::cli
