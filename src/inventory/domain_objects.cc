#include "inventory/domain_objects.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/json.h"

namespace aliquot::inventory {
namespace {

using format::Json;

// One object, and the words for an error in it: "nodes.json: HyperNode s0: what".
class Object {
 public:
  Object(const Json& json, std::string_view where) : json_(json), where_(where) {
    if (const std::string* kind = text_at(json, "kind")) kind_ = *kind;
    if (const Json* metadata = json.find("metadata"))
      if (const std::string* name = text_at(*metadata, "name")) name_ = *name;
  }

  const std::string& kind() const { return kind_; }
  const std::string& name() const { return name_; }
  Error fault(const std::string& what) const {
    return {Errc::kInvalid, std::string(where_) + ": " + kind_ + " " + name_ + ": " + what};
  }

  Result<model::LabelledHost> host() const {
    model::LabelledHost host{name_, {}};
    const Json* const metadata = json_.find("metadata");
    const Json* const labels = metadata == nullptr ? nullptr : metadata->find("labels");
    if (labels != nullptr)
      if (Status ok = read_labels(*labels, host.labels); !ok) return ok.error();
    return host;
  }

  Result<model::HyperNode> hyper_node() const {
    const Json* const spec = json_.find("spec");
    const Json* const tier = spec == nullptr ? nullptr : spec->find("tier");
    if (tier == nullptr || tier->if_int() == nullptr || *tier->if_int() < 1 ||
        *tier->if_int() > kMostTier)
      return fault("spec.tier: expected a whole number from 1 to " + std::to_string(kMostTier));
    model::HyperNode node{name_, static_cast<int>(*tier->if_int()), {}};
    const Json* const members = spec->find("members");
    if (members == nullptr) return node;
    if (members->if_array() == nullptr) return fault("spec.members: expected an array");
    for (const Json& member : *members->if_array()) {
      Result<model::HyperMember> read = read_member(member);
      if (!read) return read.error();
      node.members.push_back(*std::move(read));
    }
    return node;
  }

  Result<std::vector<std::string>> levels() const {
    const Json* const spec = json_.find("spec");
    const Json* const list = spec == nullptr ? nullptr : spec->find("levels");
    if (list == nullptr || list->if_array() == nullptr || list->if_array()->empty())
      return fault("spec.levels: expected an array of levels");
    std::vector<std::string> levels;
    for (const Json& level : *list->if_array()) {
      const std::string* const label = text_at(level, "nodeLabel");
      if (label == nullptr || label->empty()) return fault("spec.levels: each needs a nodeLabel");
      levels.push_back(*label);
    }
    return levels;
  }

 private:
  static constexpr std::int64_t kMostTier = 1'000;

  static const std::string* text_at(const Json& json, std::string_view key) {
    const Json* const found = json.find(key);
    return found == nullptr ? nullptr : found->if_string();
  }

  Status read_labels(const Json& json, model::Labels& labels) const {
    if (json.if_object() == nullptr) return fault("labels: expected an object");
    for (const auto& [key, value] : *json.if_object()) {
      if (value.if_string() == nullptr) return fault("labels: '" + key + "' is not a string");
      labels.emplace(key, *value.if_string());
    }
    return {};
  }

  Result<model::HyperMember> read_member(const Json& json) const {
    model::HyperMember member;
    const std::string* const type = text_at(json, "type");
    if (type == nullptr || (*type != "Node" && *type != "HyperNode"))
      return fault("spec.members: type must be Node or HyperNode");
    member.is_host = *type == "Node";
    const Json* const selector = json.find("selector");
    if (selector == nullptr) return fault("spec.members: each needs a selector");
    int ways = 0;
    if (const Json* exact = selector->find("exactMatch")) {
      ++ways;
      if (const std::string* name = text_at(*exact, "name")) member.name = *name;
    }
    if (const Json* regex = selector->find("regexMatch")) {
      ++ways;
      if (const std::string* pattern = text_at(*regex, "pattern")) member.pattern = *pattern;
    }
    if (const Json* match = selector->find("labelMatch")) {
      ++ways;
      if (match->find("matchExpressions") != nullptr)
        return fault("spec.members: labelMatch: only matchLabels are read");
      if (const Json* labels = match->find("matchLabels"))
        if (Status ok = read_labels(*labels, member.labels); !ok) return ok.error();
    }
    const bool empty = member.name.empty() && member.pattern.empty() && member.labels.empty();
    if (ways != 1 || empty)
      return fault("spec.members: a selector is one of exactMatch, regexMatch, labelMatch");
    if (!member.is_host && !member.labels.empty())
      return fault("spec.members: HyperNodes are not selected by label");
    return member;
  }

  const Json& json_;
  std::string_view where_;
  std::string kind_;
  std::string name_;
};

Status take(const Json& json, std::string_view where, DomainObjects& all) {
  const Object object(json, where);
  const bool ours =
      object.kind() == "Node" || object.kind() == "HyperNode" || object.kind() == "Topology";
  if (!ours) return {};
  if (object.name().empty()) return object.fault("metadata.name: missing");
  if (object.kind() == "Node") {
    Result<model::LabelledHost> host = object.host();
    if (!host) return host.error();
    all.hosts.push_back(*std::move(host));
  } else if (object.kind() == "HyperNode") {
    Result<model::HyperNode> node = object.hyper_node();
    if (!node) return node.error();
    all.hyper_nodes.push_back(*std::move(node));
  } else {
    if (!all.levels.empty()) return object.fault("there is another Topology; name one");
    Result<std::vector<std::string>> levels = object.levels();
    if (!levels) return levels.error();
    all.levels = *std::move(levels);
  }
  return {};
}

}  // namespace

Result<DomainObjects> parse_domain_objects(std::string_view text, std::string_view where) {
  const Result<Json> json = format::parse_json(text, where);
  if (!json) return json.error();
  const Json* const items = json->find("items");
  const Json& list = items == nullptr ? *json : *items;
  DomainObjects all;
  if (list.if_array() == nullptr) {
    if (Status ok = take(list, where, all); !ok) return ok.error();
  } else {
    for (const Json& object : *list.if_array())
      if (Status ok = take(object, where, all); !ok) return ok.error();
  }
  if (all.hosts.empty() && all.hyper_nodes.empty() && all.levels.empty())
    return Error{Errc::kInvalid, std::string(where) +
                                     ": holds no Node, HyperNode or Topology (kubectl get "
                                     "nodes,hypernodes -o json)"};
  return all;
}

}  // namespace aliquot::inventory
