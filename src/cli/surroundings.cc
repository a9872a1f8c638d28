#include "cli/surroundings.h"

#include <cstdlib>

#include "cli/tenant_namespace.h"
#include "common/files.h"
#include "common/state_directory.h"

namespace aliquot::cli {

namespace fs = std::filesystem;

Result<fs::path> own_program() {
  std::error_code code;
  fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) return Error{Errc::kInternal, "read /proc/self/exe: " + code.message()};
  return program;
}

Result<fs::path> library_directory() {
  const auto program = own_program();
  if (!program) return program.error();
  std::error_code code;
  fs::path directory = fs::canonical(program->parent_path() / "../lib/aliquot", code);
  if (code)
    return Error{Errc::kNotFound,
                 "find ../lib/aliquot beside " + program->string() + ": " + code.message()};
  return directory;
}

inventory::DriverQuestion driver_question(const std::string& named) {
  const char* environment = std::getenv("ALIQUOT_SIM");
  return {state_directory(), named, environment != nullptr ? environment : "",
          &inventory::find_real_driver};
}

bool inside_lease() {
  std::error_code code;
  const char* lease = std::getenv("ALIQUOT_LEASE");
  return fs::exists(fs::path(kTenantLease) / "socket", code) ||
         (lease != nullptr && fs::exists(fs::path(lease) / "socket", code));
}

Result<fs::path> share_library(const char* name) {
  std::error_code code;
  if (fs::exists(kTenantLibrary, code)) return fs::path(kTenantLibrary).parent_path() / name;
  const auto libraries = library_directory();
  if (!libraries) return libraries.error();
  return *libraries / "names" / name;
}

Result<ShareDriver> share_driver() {
  auto library = share_library("libnvidia-ml.so.1");
  if (!library) return library.error();
  std::error_code code;
  return ShareDriver{*std::move(library),
                     fs::exists(fs::path(kTenantDriver) / "machine.json", code)};
}

Result<broker::Client> broker_client() {
  const auto program = own_program();
  if (!program) return program.error();
  if (const Status made = make_directories(state_directory(), 0700); !made) return made.error();
  return broker::Client::start_or_connect(state_directory(), {program->string(), "broker"});
}

Result<broker::Client> running_broker() {
  auto broker = broker::Client::connect(state_directory());
  if (broker || broker.error().code != Errc::kUnavailable) return broker;
  return Error{Errc::kUnavailable, inside_lease()
                                       ? "not from inside a lease"
                                       : "no broker runs in " + state_directory().string() +
                                             ", so there is no lease (aliquot run makes one)"};
}

}  // namespace aliquot::cli
