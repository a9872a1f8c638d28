#include "kube/access.h"

#include <cstdlib>

#include "common/files.h"
#include "format/yaml.h"
#include "kube/base64.h"
#include "kube/object.h"

namespace aliquot::kube {

namespace {

using format::Json;

constexpr std::size_t kLongestKubeconfig = 4u << 20;

// The entry called `name` of one of the three lists of a kubeconfig.
const Json* entry(ObjectReader& config, std::string_view list, std::string_view name) {
  for (const Json& item : config.list({list}))
    if (ObjectReader(item, list).text({"name"}) == name) return &item;
  return nullptr;
}

class KubeconfigReader {
 public:
  KubeconfigReader(const Json& config, std::filesystem::path path)
      : path_(std::move(path)), config_(config, path_.string()) {}

  Result<Access> read(std::string_view wanted) {
    const std::string name =
        wanted.empty() ? config_.text({"current-context"}) : std::string(wanted);
    if (name.empty()) return refused("no current-context: name one");
    const Json* context = entry(config_, "contexts", name);
    if (context == nullptr) return refused("there is no context '" + name + "'");
    ObjectReader fields(*context, path_.string());
    const std::string cluster = fields.text({"context", "cluster"});
    const std::string user = fields.text({"context", "user"});
    if (std::string space = fields.text({"context", "namespace"}); !space.empty())
      access_.name_space = std::move(space);
    if (const Status status = read_cluster(cluster); !status) return status.error();
    if (const Status status = read_user(user); !status) return status.error();
    for (const ObjectReader* reader : {&config_, &fields})
      if (const Status status = reader->done(); !status) return status.error();
    return access_;
  }

 private:
  Error refused(const std::string& why) const {
    return Error{Errc::kInvalid, path_.string() + ": " + why};
  }

  Status read_cluster(const std::string& name) {
    const Json* found = entry(config_, "clusters", name);
    if (found == nullptr) return refused("there is no cluster '" + name + "'");
    ObjectReader fields(*found, path_.string());
    access_.server = fields.text({"cluster", "server"});
    while (access_.server.ends_with('/')) access_.server.pop_back();
    if (access_.server.empty()) return refused("cluster '" + name + "' has no server");
    access_.insecure = fields.flag({"cluster", "insecure-skip-tls-verify"});
    access_.tls_server_name = fields.text({"cluster", "tls-server-name"});
    access_.proxy = fields.text({"cluster", "proxy-url"});
    if (const Status status = pem(fields, "cluster", "certificate-authority", access_.authority);
        !status)
      return status;
    return fields.done();
  }

  Status read_user(const std::string& name) {
    if (name.empty()) return {};  // nobody: the server decides
    const Json* found = entry(config_, "users", name);
    if (found == nullptr) return refused("there is no user '" + name + "'");
    ObjectReader fields(*found, path_.string());
    for (const std::string_view program : {"exec", "auth-provider"})
      if (fields.find({"user", program}) != nullptr)
        return refused("user '" + name + "' needs a program to be run (" + std::string(program) +
                       "), which is not done: give it a client certificate, a token or a "
                       "tokenFile");
    access_.token = fields.text({"user", "token"});
    access_.token_file = beside(fields.text({"user", "tokenFile"}));
    for (const auto& [key, slot] : {std::pair{"client-certificate", &access_.client_certificate},
                                    std::pair{"client-key", &access_.client_key}})
      if (const Status status = pem(fields, "user", key, *slot); !status) return status;
    if (access_.client_certificate.empty() != access_.client_key.empty())
      return refused("user '" + name + "' has one of client-certificate and client-key only");
    return fields.done();
  }

  std::filesystem::path beside(const std::string& file) const {
    if (file.empty()) return {};
    return path_.parent_path() / file;  // an absolute one stays as it is
  }

  // The data form comes before the file, as for every client.
  Status pem(ObjectReader& fields, std::string_view part, const std::string& key, Pem& out) {
    const std::string data_key = key + "-data";
    const std::string data = fields.text({part, data_key});
    if (data.empty()) {
      out.file = beside(fields.text({part, key}));
      return {};
    }
    Result<std::string> decoded = decode_base64(data);
    if (!decoded) return refused(data_key + ": " + decoded.error().message);
    out.text = *std::move(decoded);
    return {};
  }

  std::filesystem::path path_;
  ObjectReader config_;
  Access access_;
};

}  // namespace

Access anonymous_access(std::string server) {
  Access access;
  access.server = std::move(server);
  return access;
}

Result<Access> load_kubeconfig(const std::filesystem::path& path, std::string_view context) {
  const Result<std::string> text = read_file(path, kLongestKubeconfig);
  if (!text) return text.error();
  const Result<Json> config = format::parse_yaml(*text, path.string());
  if (!config) return config.error();
  return KubeconfigReader(*config, path).read(context);
}

Environment process_environment() {
  return [](std::string_view name) -> std::string {
    const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
  };
}

Result<Access> in_cluster_access(const Environment& environment,
                                 const std::filesystem::path& root) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return Error{Errc::kNotFound,
                 "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"};
  Access access;
  const bool six = host.find(':') != std::string::npos;
  access.server = "https://" + (six ? "[" + host + "]" : host) + ":" + port;
  access.authority.file = root / "ca.crt";
  access.token_file = root / "token";
  for (const std::filesystem::path& file : {access.authority.file, access.token_file})
    if (!std::filesystem::exists(file))
      return Error{Errc::kNotFound, file.string() +
                                        ": not there; does the pod have a service account "
                                        "(automountServiceAccountToken)?"};
  if (const Result<std::string> name_space = read_file(root / "namespace", 256))
    access.name_space = *name_space;
  return access;
}

Result<Access> find_access(const std::filesystem::path& kubeconfig,
                           const Environment& environment) {
  if (!kubeconfig.empty()) return load_kubeconfig(kubeconfig);
  if (const std::string named = environment("KUBECONFIG"); !named.empty())
    return load_kubeconfig(named);
  Result<Access> access = in_cluster_access(environment);
  if (access) return access;
  return Error{access.error().code,
               "no way to the API server: no kubeconfig is named, KUBECONFIG is not set, and " +
                   access.error().message};
}

}  // namespace aliquot::kube
