// kubelet_internal_checkpoint: where kubelet keeps its device allocations across restarts. JSON,
// {"Data": {"PodDeviceEntries": [{"PodUID", "ContainerName", "ResourceName", "DeviceIDs": {NUMA:
// [id, ...]}, "AllocResp"}, ...], "RegisteredDevices": {...}}, "Checksum": n}. Kubelets before 1.20
// have DeviceIDs as one list.
#include <algorithm>

#include "format/json.h"
#include "node/kubelet_book.h"

namespace aliquot::node {
namespace {

using format::Json;

std::string text_of(const Json& object, const char* key) {
  const Json* value = object.find(key);
  const std::string* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? *text : std::string();
}

void add_ids(const Json& list, std::vector<std::string>& ids) {
  const Json::Array* items = list.if_array();
  if (items == nullptr) return;
  for (const Json& item : *items)
    if (const std::string* id = item.if_string()) ids.push_back(*id);
}

}  // namespace

Result<std::vector<HeldDevices>> parse_checkpoint(std::string_view text,
                                                  const std::vector<std::string>& resources) {
  const auto json = format::parse_json(text, "kubelet_internal_checkpoint");
  if (!json) return json.error();
  const Json* data = json->find("Data");
  const Json* entries = data != nullptr ? data->find("PodDeviceEntries") : nullptr;
  if (entries == nullptr || (entries->if_array() == nullptr && !entries->is_null()))
    return Error{Errc::kInvalid,
                 "read kubelet_internal_checkpoint: it has no Data.PodDeviceEntries; is this "
                 "kubelet newer than this program?"};
  std::vector<HeldDevices> held;
  if (entries->is_null()) return held;
  for (const Json& entry : *entries->if_array()) {
    if (std::ranges::find(resources, text_of(entry, "ResourceName")) == resources.end()) continue;
    HeldDevices devices{{}, {}, text_of(entry, "PodUID"), text_of(entry, "ContainerName"), {}};
    if (const Json* ids = entry.find("DeviceIDs")) {
      add_ids(*ids, devices.ids);
      if (const Json::Object* by_numa = ids->if_object())
        for (const auto& member : *by_numa) add_ids(member.value, devices.ids);
    }
    held.push_back(std::move(devices));
  }
  return held;
}

}  // namespace aliquot::node
