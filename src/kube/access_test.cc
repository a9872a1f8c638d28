#include "kube/access.h"

#include <gtest/gtest.h>

#include "common/files.h"
#include "kube/base64.h"

namespace aliquot::kube {
namespace {

// A directory of its own, gone at the end.
struct Files : testing::Test {
  Files() {
    std::string name = "/tmp/aliquot-access.XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~Files() override { std::filesystem::remove_all(root_); }
  std::filesystem::path write(std::string_view name, std::string_view text) {
    EXPECT_TRUE(write_file_atomically(root_ / name, text));
    return root_ / name;
  }
  Result<Access> load(std::string_view text, std::string_view context = {}) {
    return load_kubeconfig(write("config", text), context);
  }
  std::filesystem::path root_;
};

using Kubeconfig = Files;
using InCluster = Files;

TEST_F(Kubeconfig, WithFilesNamesThemFromItsOwnDirectory) {
  const Result<Access> access = load(R"(
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://1.2.3.4:6443/", certificate-authority: ca.crt,
  tls-server-name: api.example}}]
users: [{name: u, user: {client-certificate: /pki/u.crt, client-key: u.key, tokenFile: tok}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: lab}}]
current-context: x
)");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://1.2.3.4:6443");
  EXPECT_EQ(access->authority.file, root_ / "ca.crt");
  EXPECT_EQ(access->client_certificate.file, "/pki/u.crt");
  EXPECT_EQ(access->client_key.file, root_ / "u.key");
  EXPECT_EQ(access->token_file, root_ / "tok");
  EXPECT_EQ(access->tls_server_name, "api.example");
  EXPECT_EQ(access->name_space, "lab");
  EXPECT_FALSE(access->insecure);
}

TEST_F(Kubeconfig, WithDataDecodesItAndPrefersItToFiles) {
  const Result<Access> access = load(R"(
clusters: [{name: c, cluster: {server: https://s, certificate-authority: no, certificate-authority-data: Q0E=}}]
users: [{name: u, user: {token: abc}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {cluster: c, user: ""}}]
current-context: x
)");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->authority, (Pem{"CA", {}}));
  EXPECT_EQ(access->token, "abc");
  EXPECT_EQ(access->name_space, "default");
}

TEST_F(Kubeconfig, GivesTheContextThatWasNamed) {
  const std::string_view text = R"(
clusters: [{name: c, cluster: {server: https://s}}, {name: d, cluster: {server: https://t}}]
contexts: [{name: x, context: {cluster: c}}, {name: y, context: {cluster: d}}]
current-context: x
)";
  EXPECT_EQ(load(text)->server, "https://s");
  EXPECT_EQ(load(text, "y")->server, "https://t");
  EXPECT_EQ(load(text, "z").error().message,
            (root_ / "config").string() + ": there is no context 'z'");
}

TEST_F(Kubeconfig, ThatCannotBeUsedIsRefusedWithTheReason) {
  const auto message = [&](std::string_view user) {
    const Result<Access> access =
        load("clusters: [{name: c, cluster: {server: https://s}}]\nusers: [{name: u, user: " +
             std::string(user) +
             "}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n");
    return access ? std::string("accepted") : access.error().message;
  };
  EXPECT_NE(message("{exec: {command: aws}}").find("needs a program to be run (exec)"),
            std::string::npos);
  EXPECT_NE(message("{client-key: k}").find("one of client-certificate and client-key only"),
            std::string::npos);
  EXPECT_NE(message("{client-certificate-data: '*'}").find("client-certificate-data: no base64"),
            std::string::npos);
  EXPECT_NE(message("{token: [1]}").find("user.token: expected a string"), std::string::npos);
  EXPECT_FALSE(load("current-context: x"));
  EXPECT_FALSE(load("contexts: []"));
  EXPECT_FALSE(load("a: [\n"));
  EXPECT_FALSE(load_kubeconfig(root_ / "absent"));
}

TEST_F(InCluster, TakesTheAddressFromTheEnvironmentAndTheRestFromFiles) {
  write("ca.crt", "CA");
  write("token", "t");
  write("namespace", "gpu-system");
  const auto environment = [](std::string_view name) -> std::string {
    return name == "KUBERNETES_SERVICE_HOST" ? "fd00::1" : "443";
  };
  const Result<Access> access = in_cluster_access(environment, root_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->token_file, root_ / "token");
  EXPECT_EQ(access->name_space, "gpu-system");
}

TEST_F(InCluster, OutsideOfAPodSaysWhatIsMissing) {
  const auto nothing = [](std::string_view) { return std::string(); };
  EXPECT_NE(in_cluster_access(nothing, root_).error().message.find("KUBERNETES_SERVICE_HOST"),
            std::string::npos);
  const auto set = [](std::string_view) { return std::string("1"); };
  EXPECT_NE(in_cluster_access(set, root_).error().message.find("ca.crt: not there"),
            std::string::npos);
  EXPECT_NE(find_access({}, nothing).error().message.find("no kubeconfig is named"),
            std::string::npos);
}

TEST(Base64, DecodesWhatItEncodes) {
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
  for (const auto& [plain, coded] : pairs) {
    EXPECT_EQ(encode_base64(plain), coded);
    EXPECT_EQ(*decode_base64(coded), plain);
  }
  EXPECT_EQ(*decode_base64("Zm9v\nYg=="), "foob");
  for (const std::string_view wrong : {"Zg", "Zg=a", "Zm9v!", "====", "Z==="})
    EXPECT_FALSE(decode_base64(wrong)) << wrong;
}

}  // namespace
}  // namespace aliquot::kube
