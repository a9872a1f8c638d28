#include "node/bound_container.h"

#include "format/fields.h"
#include "format/json.h"
#include "node/slots.h"

namespace aliquot::node {
namespace {

using format::Json;

constexpr unsigned kVersion = 1;
constexpr std::size_t kPodPart = 24, kContainerPart = 14;

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.append(text);
  return list;
}

}  // namespace

std::string bound_container_text(const BoundContainer& bound) {
  return Json::object()
             .set("version", kVersion)
             .set("key", bound.key)
             .set("ids", list_of(bound.ids))
             .set("namespace", bound.pod_namespace)
             .set("pod", bound.pod)
             .set("uid", bound.uid)
             .set("container", bound.container)
             .set("lease", bound.lease)
             .set("gpus", list_of(bound.gpus))
             .set("share", bound.share)
             .dump(2) +
         "\n";
}

Result<BoundContainer> parse_bound_container(std::string_view text, std::string_view where) {
  const auto json = format::parse_json(text, where);
  if (!json) return json.error();
  BoundContainer bound;
  unsigned version = 0;
  format::Fields fields(*json, std::string(where));
  fields.required("version", version)
      .required("key", bound.key)
      .required("ids", bound.ids)
      .required("namespace", bound.pod_namespace)
      .required("pod", bound.pod)
      .required("uid", bound.uid)
      .required("container", bound.container)
      .required("lease", bound.lease)
      .required("gpus", bound.gpus)
      .optional("share", bound.share);
  if (version != kVersion) fields.reject("version", "not one that this program knows");
  if (bound.key != set_key(bound.ids)) fields.reject("key", "not the name of these ids");
  if (const Status done = fields.done(); !done) return done.error();
  return bound;
}

std::string lease_name_for(const BoundContainer& bound) {
  const std::string hash = set_key({bound.uid, bound.container, bound.key}).substr(0, 8);
  return bound.pod.substr(0, kPodPart) + "." + bound.container.substr(0, kContainerPart) + "." +
         hash;
}

}  // namespace aliquot::node
