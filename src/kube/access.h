// How to reach an API server and who we are there: read from a kubeconfig file, or from what every
// pod finds in its own file system.
//
// Leaves to others: the connection (http.h). Values and functions that read files; any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace aliquot::kube {

// A certificate or key: its text, or the file it lies in. Files are read anew at every connection,
// so that one which rotates (kubelet-client-current.pem) stays valid.
struct Pem {
  std::string text;
  std::filesystem::path file;
  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const Pem&) const = default;
};

struct Access {
  std::string server;  // "https://10.0.0.1:443", no slash at the end
  Pem authority;       // empty: the system's authorities
  Pem client_certificate;
  Pem client_key;
  std::string token;
  std::filesystem::path token_file;  // read anew as it rotates; comes before `token`
  std::string tls_server_name;       // empty: the host of `server`
  std::string proxy;                 // empty: none, whatever the environment says
  bool insecure = false;             // no check of the server's certificate
  std::string name_space = "default";
  bool operator==(const Access&) const = default;
};

// Nobody's: kubelet's read-only port, a server in a test.
Access anonymous_access(std::string server);

// The current context of the file, or the one named. Relative paths are taken from its directory.
// Users that need a program to be run (exec, auth-provider) are refused with what to do instead.
Result<Access> load_kubeconfig(const std::filesystem::path& path, std::string_view context = {});

using Environment = std::function<std::string(std::string_view name)>;  // "" where unset
Environment process_environment();

// KUBERNETES_SERVICE_HOST and _PORT, and the service account mounted below `root`.
Result<Access> in_cluster_access(
    const Environment& environment,
    const std::filesystem::path& root = "/var/run/secrets/kubernetes.io/serviceaccount");

// `kubeconfig` where it is named, else $KUBECONFIG, else in-cluster. The error says all three.
Result<Access> find_access(const std::filesystem::path& kubeconfig, const Environment& environment);

}  // namespace aliquot::kube
