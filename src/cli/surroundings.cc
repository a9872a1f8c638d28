#include "cli/surroundings.h"

#include <cstdlib>
#include <optional>

#include "cli/tenant_namespace.h"
#include "common/files.h"
#include "common/state_directory.h"
#include "format/json.h"

namespace aliquot::cli {

namespace fs = std::filesystem;

namespace {
Error from_inside() { return {Errc::kUnavailable, "not from inside a lease"}; }
}  // namespace

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
  if (inside_lease()) return from_inside();  // a broker of one's own would answer, about nothing
  const auto program = own_program();
  if (!program) return program.error();
  if (const Status made = make_directories(state_directory(), 0700); !made) return made.error();
  return broker::Client::start_or_connect(state_directory(), {program->string(), "broker"});
}

std::optional<inventory::Driver> daemon_driver() {
  if (daemon_directory().empty()) return std::nullopt;
  const auto text = read_file(daemon_directory() / "driver.json", 1u << 16);
  const auto served = text ? inventory::parse_driver(*text, "driver.json") : text.error();
  return served ? std::optional(*served) : std::nullopt;
}

Result<broker::Client> broker_for(const inventory::Driver& driver) {
  if (daemon_driver() == driver)
    if (auto daemon = broker::Client::connect(daemon_directory())) return daemon;
  return broker_client();
}

std::vector<broker::Client> running_brokers() {
  std::vector<broker::Client> found;
  for (const fs::path& directory : {daemon_directory(), state_directory()}) {
    if (directory.empty()) continue;
    if (auto client = broker::Client::connect(directory)) found.push_back(*std::move(client));
  }
  return found;
}

Result<broker::Client> broker_of_lease(const std::string& lease) {
  std::optional<Error> last;
  for (broker::Client& client : running_brokers()) {
    const auto row = client.get_lease(lease);
    if (row) return std::move(client);
    last = row.error();
  }
  if (last) return *last;
  return running_broker();
}

Result<std::vector<std::string>> leases_called(const std::string& text) {
  constexpr std::string_view kPod = "pod/";
  if (!text.starts_with(kPod)) return std::vector<std::string>{text};
  const std::string wanted = text.substr(kPod.size());
  std::vector<std::string> leases;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(daemon_directory() / "pods", code)) {
    if (entry.path().extension() != ".json") continue;
    const auto record = read_file(entry.path(), 1u << 16);
    const auto json = record ? format::parse_json(*record, entry.path().string()) : record.error();
    if (!json) continue;
    const auto field = [&json](const char* key) {
      const format::Json* value = json->find(key);
      return value != nullptr && value->if_string() != nullptr ? *value->if_string() : "";
    };
    const std::string pod = field("namespace") + "/" + field("pod");
    if (wanted == pod || wanted == pod + "/" + field("container")) leases.push_back(field("lease"));
  }
  if (!leases.empty()) return leases;
  return Error{Errc::kNotFound, "find pod " + wanted +
                                    ": none of its containers has a lease here; "
                                    "say pod/NAMESPACE/NAME, on the node it runs on"};
}

Result<broker::Client> running_broker() {
  auto broker = broker::Client::connect(state_directory());
  if (broker || broker.error().code != Errc::kUnavailable) return broker;
  if (inside_lease()) return from_inside();
  return Error{Errc::kUnavailable, "no broker runs in " + state_directory().string() +
                                       ", so there is no lease (aliquot run makes one)"};
}

}  // namespace aliquot::cli
