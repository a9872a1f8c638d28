#include "node/testing/fake_kubelet.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include <deviceplugin/v1beta1/api.grpc.pb.h>
#include <podresources/v1/api.grpc.pb.h>

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<grpc::Channel> channel_to(const fs::path& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix://" + socket.string(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::unique_ptr<grpc::Server> serve(const fs::path& socket, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + socket.string(), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

// A plugin as kubelet keeps it.
struct Plugin {
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  std::unique_ptr<grpc::ClientContext> stream = std::make_unique<grpc::ClientContext>();
  std::thread reader;
  std::map<std::string, bool> devices;  // guarded by the kubelet's mutex
};

struct Held {
  FakeKubelet::Admission who;
  std::string resource;
  std::vector<std::string> ids;
};

Error error_of(const grpc::Status& status) {
  return {status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? Errc::kExhausted
                                                                      : Errc::kInternal,
          status.error_message()};
}

}  // namespace

class FakeKubelet::Impl final : public v1beta1::Registration::Service,
                                public v1::PodResourcesLister::Service {
 public:
  Impl(fs::path directory, unsigned seed) : root(std::move(directory)), random(seed) {
    fs::create_directories(root / "device-plugins");
    fs::create_directories(root / "pod-resources");
  }

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*answer*/) override {
    {
      const std::lock_guard lock(mutex);
      if (!refusal.empty()) return {grpc::StatusCode::UNKNOWN, refusal};
    }
    auto plugin = std::make_shared<Plugin>();
    const auto channel = channel_to(root / "device-plugins" / request->endpoint());
    plugin->stub = v1beta1::DevicePlugin::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    context.set_wait_for_ready(true);
    v1beta1::DevicePluginOptions options;
    if (const auto answered = plugin->stub->GetDevicePluginOptions(&context, {}, &options);
        !answered.ok())
      return {grpc::StatusCode::UNKNOWN,
              "failed to dial device plugin: " + answered.error_message()};
    const std::lock_guard lock(mutex);
    ++registered;
    if (auto& old = plugins[request->resource_name()]; old) {
      old->stream->TryCancel();
      retired.push_back(std::move(old));
    }
    plugins[request->resource_name()] = plugin;
    plugin->reader = std::thread([this, plugin] { read(*plugin); });
    return grpc::Status::OK;
  }

  grpc::Status List(grpc::ServerContext* /*context*/, const v1::ListPodResourcesRequest* /*r*/,
                    v1::ListPodResourcesResponse* answer) override {
    const std::lock_guard lock(mutex);
    ++listed;
    if (limited > 0) {
      --limited;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
    }
    std::map<std::pair<std::string, std::string>, v1::PodResources*> pods;
    for (const Held& one : held) {
      auto& pod = pods[{one.who.pod_namespace, one.who.pod}];
      if (pod == nullptr) {
        pod = answer->add_pod_resources();
        pod->set_namespace_(one.who.pod_namespace);
        pod->set_name(one.who.pod);
      }
      if (one.who.ordinary_init) continue;
      auto& container = *pod->add_containers();
      container.set_name(one.who.container);
      auto& devices = *container.add_devices();
      devices.set_resource_name(one.resource);
      for (const std::string& id : one.ids) devices.add_device_ids(id);
    }
    return grpc::Status::OK;
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* answer) override {
    const std::lock_guard lock(mutex);
    for (const auto& [resource, plugin] : plugins)
      for (const auto& [id, healthy] : plugin->devices) {
        if (!healthy) continue;
        auto& devices = *answer->add_devices();
        devices.set_resource_name(resource);
        devices.add_device_ids(id);
      }
    return grpc::Status::OK;
  }

  void read(Plugin& plugin) {
    const auto stream = plugin.stub->ListAndWatch(plugin.stream.get(), {});
    v1beta1::ListAndWatchResponse response;
    while (stream->Read(&response)) {
      const std::lock_guard lock(mutex);
      plugin.devices.clear();
      for (const auto& device : response.devices())
        plugin.devices[device.id()] = device.health() == "Healthy";
      changed.notify_all();
    }
    static_cast<void>(stream->Finish());
    const std::lock_guard lock(mutex);
    plugin.devices.clear();
    changed.notify_all();
  }

  // Ids kept by the pod's init container first, then free ones, preferred by the plugin.
  std::vector<std::string> choose(Plugin& plugin, const std::string& resource,
                                  const Admission& who) {
    std::vector<std::string> must, free;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [id, healthy] : plugin.devices) {
        const auto holder = std::ranges::find_if(held, [&](const Held& one) {
          return one.resource == resource && std::ranges::find(one.ids, id) != one.ids.end();
        });
        if (holder == held.end() && healthy) free.push_back(id);
        if (holder != held.end() && holder->who.ordinary_init && holder->who.pod == who.pod &&
            holder->who.pod_namespace == who.pod_namespace && must.size() < who.count)
          must.push_back(id);
      }
      std::ranges::shuffle(free, random);
    }
    if (must.size() + free.size() < who.count) return {};
    if (must.size() == who.count) return must;
    v1beta1::PreferredAllocationRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : must) container.add_available_deviceids(id);
    for (const std::string& id : free) container.add_available_deviceids(id);
    for (const std::string& id : must) container.add_must_include_deviceids(id);
    container.set_allocation_size(static_cast<int>(who.count));
    v1beta1::PreferredAllocationResponse answer;
    grpc::ClientContext context;
    std::vector<std::string> ids = must;
    if (plugin.stub->GetPreferredAllocation(&context, request, &answer).ok() &&
        answer.container_responses_size() == 1)
      ids.assign(answer.container_responses(0).deviceids().begin(),
                 answer.container_responses(0).deviceids().end());
    for (const std::string& id : free)
      if (ids.size() < who.count && std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    std::ranges::shuffle(ids, random);
    return ids;
  }

  Result<std::shared_ptr<Plugin>> plugin_of(const std::string& resource) {
    const std::lock_guard lock(mutex);
    const auto at = plugins.find(resource);
    if (at == plugins.end()) return Error{Errc::kNotFound, "no plugin of " + resource};
    return at->second;
  }

  fs::path root;
  std::mt19937 random;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::string refusal;
  unsigned registered = 0, listed = 0, limited = 0;
  // Shared with the thread that reads a plugin's stream.
  std::map<std::string, std::shared_ptr<Plugin>> plugins;
  std::vector<std::shared_ptr<Plugin>> retired;
  std::vector<Held> held;
  std::unique_ptr<grpc::Server> registration_server, resources_server;
};

FakeKubelet::FakeKubelet(fs::path directory, unsigned seed)
    : impl_(std::make_unique<Impl>(std::move(directory), seed)) {
  start();
}

FakeKubelet::~FakeKubelet() { stop(); }

fs::path FakeKubelet::plugin_directory() const { return impl_->root / "device-plugins"; }
fs::path FakeKubelet::pod_resources_socket() const {
  return impl_->root / "pod-resources" / "kubelet.sock";
}

void FakeKubelet::start() {
  for (const auto& entry : fs::directory_iterator(plugin_directory()))
    if (!entry.is_directory()) fs::remove(entry.path());
  fs::remove(pod_resources_socket());
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->registered = 0;
  }
  impl_->resources_server =
      serve(pod_resources_socket(), static_cast<v1::PodResourcesLister::Service&>(*impl_));
  impl_->registration_server = serve(plugin_directory() / "kubelet.sock",
                                     static_cast<v1beta1::Registration::Service&>(*impl_));
}

void FakeKubelet::stop() {
  const auto now = std::chrono::system_clock::now() + std::chrono::milliseconds(200);
  if (impl_->registration_server) impl_->registration_server->Shutdown(now);
  if (impl_->resources_server) impl_->resources_server->Shutdown(now);
  impl_->registration_server.reset();
  impl_->resources_server.reset();
  std::vector<std::shared_ptr<Plugin>> ending;
  {
    const std::lock_guard lock(impl_->mutex);
    ending.swap(impl_->retired);
    for (auto& [resource, plugin] : impl_->plugins) ending.push_back(plugin);
    impl_->plugins.clear();
  }
  for (const auto& plugin : ending) {
    plugin->stream->TryCancel();
    plugin->reader.join();
  }
}

void FakeKubelet::refuse(std::string why) {
  const std::lock_guard lock(impl_->mutex);
  impl_->refusal = std::move(why);
}

void FakeKubelet::drop_stream(const std::string& resource) {
  const auto plugin = impl_->plugin_of(resource);
  if (plugin) (*plugin)->stream->TryCancel();
}

unsigned FakeKubelet::registrations() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->registered;
}

unsigned FakeKubelet::lists() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->listed;
}

void FakeKubelet::limit_rate(unsigned times) {
  const std::lock_guard lock(impl_->mutex);
  impl_->limited = times;
}

std::map<std::string, bool> FakeKubelet::devices(const std::string& resource) const {
  const std::lock_guard lock(impl_->mutex);
  const auto at = impl_->plugins.find(resource);
  return at == impl_->plugins.end() ? std::map<std::string, bool>() : at->second->devices;
}

bool FakeKubelet::wait_devices(const std::string& resource,
                               const std::function<bool(const std::map<std::string, bool>&)>& test,
                               std::chrono::milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!test(devices(resource))) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait_for(lock, std::chrono::milliseconds(10));
  }
  return true;
}

Result<FakeKubelet::Allocated> FakeKubelet::admit(const std::string& resource,
                                                  const Admission& admission) {
  const auto plugin = impl_->plugin_of(resource);
  if (!plugin) return plugin.error();
  Allocated result;
  result.ids = impl_->choose(**plugin, resource, admission);
  if (result.ids.empty()) return Error{Errc::kExhausted, "no healthy devices present"};
  v1beta1::AllocateRequest request;
  auto& container = *request.add_container_requests();
  for (const std::string& id : result.ids) container.add_devices_ids(id);
  v1beta1::AllocateResponse answer;
  grpc::ClientContext context;
  if (const auto status = (*plugin)->stub->Allocate(&context, request, &answer); !status.ok())
    return error_of(status);
  const auto& given = answer.container_responses(0);
  for (const auto& [name, value] : given.envs()) result.gift.environment[name] = value;
  for (const auto& mount : given.mounts())
    result.gift.mounts.push_back({mount.host_path(), mount.container_path(), mount.read_only()});
  for (const auto& device : given.devices())
    result.gift.devices.push_back(
        {device.host_path(), device.container_path(), device.permissions()});
  for (const auto& device : given.cdi_devices()) result.gift.cdi_devices.push_back(device.name());
  const std::lock_guard lock(impl_->mutex);
  impl_->held.push_back({admission, resource, result.ids});
  return result;
}

Status FakeKubelet::pre_start(const std::string& resource, const std::vector<std::string>& ids) {
  const auto plugin = impl_->plugin_of(resource);
  if (!plugin) return plugin.error();
  v1beta1::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1beta1::PreStartContainerResponse answer;
  const auto status = (*plugin)->stub->PreStartContainer(&context, request, &answer);
  return status.ok() ? Status{} : Status{error_of(status)};
}

void FakeKubelet::remove(const std::string& pod_namespace, const std::string& pod) {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->held, [&](const Held& one) {
    return one.who.pod == pod && one.who.pod_namespace == pod_namespace;
  });
}

}  // namespace aliquot::node
