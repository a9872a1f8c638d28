#include "node/kubelet_book.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include <podresources/v1/api.grpc.pb.h>

namespace aliquot::node {
namespace {

using namespace std::chrono_literals;

constexpr auto kCallLimit = 3s;
// A node may have hundreds of pods with many devices each.
constexpr int kLargestAnswer = 16 << 20;

Error error_of(const char* what, const grpc::Status& status) {
  Errc code = Errc::kInternal;
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) code = Errc::kExhausted;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    code = Errc::kUnavailable;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) code = Errc::kNotFound;
  return {code, std::string("ask kubelet for ") + what + ": " + status.error_message()};
}

class GrpcPodResources final : public PodResources {
 public:
  explicit GrpcPodResources(const std::filesystem::path& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // A kubelet that restarts is away for a second or two: look for it often.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetMaxReceiveMessageSize(kLargestAnswer);
    stub_ = v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
        "unix://" + socket.string(), grpc::InsecureChannelCredentials(), arguments));
  }

  Result<KubeletBook> list(const std::vector<std::string>& resources) override {
    grpc::ClientContext context;
    prepare(context);
    v1::ListPodResourcesResponse answer;
    const grpc::Status status = stub_->List(&context, {}, &answer);
    if (!status.ok()) return error_of("the pods' devices", status);
    KubeletBook book;
    for (const auto& pod : answer.pod_resources()) {
      book.pods.push_back({pod.namespace_(), pod.name()});
      for (const auto& container : pod.containers())
        for (const std::string& resource : resources)
          if (auto ids = ids_of(container.devices(), resource); !ids.empty())
            book.held.push_back(
                {pod.namespace_(), pod.name(), {}, container.name(), std::move(ids)});
    }
    return book;
  }

  Result<std::vector<std::string>> allocatable(const std::string& resource) override {
    grpc::ClientContext context;
    prepare(context);
    v1::AllocatableResourcesResponse answer;
    const grpc::Status status = stub_->GetAllocatableResources(&context, {}, &answer);
    if (!status.ok()) return error_of("its allocatable devices", status);
    return ids_of(answer.devices(), resource);
  }

 private:
  static void prepare(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    context.set_wait_for_ready(true);
  }

  template <typename Devices>
  static std::vector<std::string> ids_of(const Devices& devices, const std::string& resource) {
    std::vector<std::string> ids;
    for (const auto& device : devices)
      if (device.resource_name() == resource)
        ids.insert(ids.end(), device.device_ids().begin(), device.device_ids().end());
    return ids;
  }

  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
};

}  // namespace

std::unique_ptr<PodResources> open_pod_resources(const std::filesystem::path& socket) {
  return std::make_unique<GrpcPodResources>(socket);
}

}  // namespace aliquot::node
