#include "node/device_plugin.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stop_token>

#include <deviceplugin/v1beta1/api.grpc.pb.h>
#include "common/files.h"
#include "node/slots.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using grpc::ServerContext;

constexpr auto kRegisterLimit = 12s;    // kubelet dials us for up to 10 s
constexpr auto kStreamLook = 400ms;     // how soon a stream notices that its peer is gone
constexpr auto kShutdownLimit = 500ms;  // then calls are cancelled
// kubelet may start a hundred containers at once; each holds a thread while its pod is looked up.
constexpr int kMostThreads = 192;

grpc::Status status_of(const Error& error) {
  constexpr auto code = [](Errc c) {
    switch (c) {
      case Errc::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case Errc::kInvalid:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case Errc::kExhausted:
        return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case Errc::kUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case Errc::kDenied:
        return grpc::StatusCode::PERMISSION_DENIED;
      case Errc::kInternal:
        break;
    }
    return grpc::StatusCode::INTERNAL;
  };
  return {code(error.code), error.message};
}

template <typename Strings>
std::vector<std::string> list_of(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

v1beta1::ListAndWatchResponse message_of(const DeviceBoard::Content& content, unsigned first,
                                         unsigned slots) {
  v1beta1::ListAndWatchResponse message;
  for (const OfferedGpu& gpu : content.gpus)
    for (unsigned n = first; n < first + slots; ++n) {
      v1beta1::Device& device = *message.add_devices();
      device.set_id(slot_id({gpu.uuid, n}));
      device.set_health(gpu.healthy ? "Healthy" : "Unhealthy");
      if (gpu.numa && *gpu.numa >= 0) device.mutable_topology()->add_nodes()->set_id(*gpu.numa);
    }
  return message;
}

void fill(v1beta1::ContainerAllocateResponse& to, const ContainerGift& gift) {
  for (const auto& [name, value] : gift.environment) (*to.mutable_envs())[name] = value;
  for (const MountedPath& mount : gift.mounts) {
    auto& added = *to.add_mounts();
    added.set_host_path(mount.host);
    added.set_container_path(mount.container);
    added.set_read_only(mount.read_only);
  }
  for (const DeviceNode& device : gift.devices) {
    auto& added = *to.add_devices();
    added.set_host_path(device.host);
    added.set_container_path(device.container);
    added.set_permissions(device.permissions);
  }
  for (const std::string& name : gift.cdi_devices) to.add_cdi_devices()->set_name(name);
}

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(const PluginServer::Options& options, const DeviceBoard& board,
          PluginDecisions& decisions)
      : first_(options.first_slot),
        slots_(options.slots_per_gpu),
        board_(board),
        decisions_(decisions) {}

  grpc::Status GetDevicePluginOptions(ServerContext* /*context*/, const v1beta1::Empty* /*request*/,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_pre_start_required(true);
    options->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(ServerContext* context, const v1beta1::Empty* /*request*/,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    std::uint64_t sent = 0;
    ++streams_;
    while (!stopping_.stop_requested() && !context->IsCancelled()) {
      const auto news = board_.wait(sent, kStreamLook, stopping_.get_token());
      if (!news) continue;
      if (!writer->Write(message_of(*news, first_, slots_))) break;
      sent = news->version;
    }
    --streams_;
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(ServerContext* /*context*/,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& container : request->container_requests()) {
      auto& answer = *response->add_container_responses();
      const auto count = static_cast<std::size_t>(std::max(container.allocation_size(), 0));
      for (const std::string& id :
           decisions_.preferred(list_of(container.available_deviceids()),
                                list_of(container.must_include_deviceids()), count))
        answer.add_deviceids(id);
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(ServerContext* /*context*/, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& container : request->container_requests()) {
      const auto gift = decisions_.allocate(list_of(container.devices_ids()));
      if (!gift) return status_of(gift.error());
      fill(*response->add_container_responses(), *gift);
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(ServerContext* /*context*/,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* /*response*/) override {
    const Status ready = decisions_.before_start(list_of(request->devices_ids()));
    return ready ? grpc::Status::OK : status_of(ready.error());
  }

  void stop() { stopping_.request_stop(); }
  bool has_stream() const { return streams_ > 0; }

 private:
  unsigned first_;
  unsigned slots_;
  const DeviceBoard& board_;
  PluginDecisions& decisions_;
  std::atomic<int> streams_ = 0;
  std::stop_source stopping_;
};

class GrpcPluginServer final : public PluginServer {
 public:
  GrpcPluginServer(const Options& options, const DeviceBoard& board, PluginDecisions& decisions)
      : service_(options, board, decisions) {}
  ~GrpcPluginServer() override {
    service_.stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
  }

  Status start(const fs::path& socket) {
    ::unlink(socket.c_str());
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("device-plugin");
    quota.SetMaxThreads(kMostThreads);
    builder.SetResourceQuota(quota);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    int bound = 0;
    builder.AddListeningPort("unix://" + socket.string(), grpc::InsecureServerCredentials(),
                             &bound);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (!server_ || ::chmod(socket.c_str(), 0600) != 0) return errno_error("serve at", socket);
    return {};
  }

  bool has_stream() const override { return service_.has_stream(); }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<PluginServer>> PluginServer::serve(const Options& options,
                                                          const DeviceBoard& board,
                                                          PluginDecisions& decisions) {
  auto server = std::make_unique<GrpcPluginServer>(options, board, decisions);
  if (const Status started = server->start(options.socket); !started) return started.error();
  return std::unique_ptr<PluginServer>(std::move(server));
}

Status register_plugin(const Registration& registration) {
  grpc::ChannelArguments arguments;
  // grpc-go refuses the percent-encoded path that gRPC C++ makes of a unix socket.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // A connection of its own: a shared one may still be backing off from the kubelet before.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel("unix://" + registration.kubelet_socket.string(),
                                                 grpc::InsecureChannelCredentials(), arguments);
  const auto stub = v1beta1::Registration::NewStub(channel);
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(registration.endpoint);
  request.set_resource_name(registration.resource);
  request.mutable_options()->set_pre_start_required(true);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kRegisterLimit);
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  if (status.ok()) return {};
  const bool absent = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return Error{absent ? Errc::kUnavailable : Errc::kInvalid,
               "register " + registration.resource + " with kubelet at " +
                   registration.kubelet_socket.string() + ": " + status.error_message()};
}

}  // namespace aliquot::node
