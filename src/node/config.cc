#include "node/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "format/yaml.h"
#include "model/quantity.h"

namespace aliquot::node {
namespace {

Error wrong(const std::string& text, std::string_view expected) {
  return {Errc::kInvalid, "\"" + text + "\": expected " + std::string(expected)};
}

Error unknown_section(const std::string& place, const std::string& section) {
  return {Errc::kInvalid, place + ": section " + section + ": only [DevicePlugin] is known"};
}

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return number;
}

// "60s", "5m", "1h", "500ms"; a bare number is seconds, as others have it.
Result<Nanoseconds> duration(const std::string& text) {
  const std::size_t at = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = whole(std::string_view(text).substr(0, at));
  const std::string_view unit = std::string_view(text).substr(at);
  constexpr std::array<std::pair<std::string_view, Nanoseconds>, 5> kUnits{{{"ms", kMillisecond},
                                                                            {"s", kSecond},
                                                                            {"", kSecond},
                                                                            {"m", 60 * kSecond},
                                                                            {"h", 3600 * kSecond}}};
  const auto known =
      std::ranges::find(kUnits, unit, &std::pair<std::string_view, Nanoseconds>::first);
  if (!number || known == kUnits.end() || *number > 1'000'000)
    return wrong(text, "a time such as 60s, 5m or 500ms");
  return static_cast<Nanoseconds>(*number) * known->second;
}

template <typename T, std::size_t N>
Status one_of(T& out, const std::string& text,
              const std::array<std::pair<std::string_view, T>, N>& words) {
  std::string expected;
  for (const auto& [word, value] : words) {
    if (word == text) {
      out = value;
      return {};
    }
    expected += (expected.empty() ? "" : " or ") + std::string(word);
  }
  return wrong(text, expected);
}

Status set_slots(Config& config, const std::string& text) {
  const auto number = whole(text);
  // 16 GPUs of 1000 slots are a message of about 1 MiB; kubelet takes 4 MiB.
  if (!number || *number < 1 || *number > 1000) return wrong(text, "1 to 1000");
  config.slots_per_gpu = static_cast<unsigned>(*number);
  return {};
}

std::string trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(" \t\r") + 1 - from));
}

Status set_unleased(Config& config, const std::string& text) {
  return one_of(config.on_unleased, text,
                std::array<std::pair<std::string_view, OnUnleased>, 2>{
                    {{"report", OnUnleased::kReport}, {"end", OnUnleased::kEnd}}});
}

Status set_enforce(Config& config, const std::string& text) {
  return one_of(
      config.observe.all, text,
      std::array<std::pair<std::string_view, bool>, 2>{{{"on", false}, {"observe", true}}});
}

// "lab, default/train": a name is never empty and has no more than one slash.
Status set_observed(Config& config, const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (name.empty() || std::ranges::count(name, '/') > 1 || name.front() == '/' ||
        name.back() == '/')
      return wrong(text, "NAMESPACE or NAMESPACE/POD, separated by commas");
    names.push_back(name);
  }
  config.observe.names = std::move(names);
  return {};
}

Status set_replicas(Config& config, const std::string& text) {
  const auto number = whole(text);
  if (!number || *number > 100) return wrong(text, "0 to 100");
  config.nvidia_replicas = static_cast<unsigned>(*number);
  return {};
}

template <Nanoseconds Config::* M>
Status set_interval(Config& config, const std::string& text) {
  const auto time = duration(text);
  if (!time) return time.error();
  if (*time < kSecond) return wrong(text, "at least 1s");
  config.*M = *time;
  return {};
}

Status set_taint(Config& config, const std::string& text) {
  for (const char* known : {"", "NoSchedule", "PreferNoSchedule", "NoExecute"})
    if (text == known) {
      config.unhealthy_taint = text;
      return {};
    }
  return wrong(text, "NoSchedule, PreferNoSchedule, NoExecute or nothing");
}

Status set_unit(Config& config, const std::string& text) {
  const auto memory = model::parse_memory(text);
  if (!memory || memory->kind != model::MemoryQuantity::Kind::kBytes)
    return wrong(text, "a size such as 1GB or 1MiB");
  config.default_memory_unit = memory->value;
  return {};
}

Status set_kubelet(Config& config, const std::string& text) {
  return one_of(
      config.kubelet, text,
      std::array<std::pair<std::string_view, UseKubelet>, 3>{
          {{"auto", UseKubelet::kAuto}, {"yes", UseKubelet::kYes}, {"no", UseKubelet::kNo}}});
}

Status set_strategy(Config& config, const std::string& text) {
  return one_of(config.allocator_strategy, text,
                std::array<std::pair<std::string_view, SlotStrategy>, 2>{
                    {{"binpack", SlotStrategy::kBinpack}, {"spread", SlotStrategy::kSpread}}});
}

Status set_injection(Config& config, const std::string& text) {
  return one_of(config.injection, text,
                std::array<std::pair<std::string_view, InjectionWay>, 2>{
                    {{"cdi", InjectionWay::kCdi}, {"mounts", InjectionWay::kMounts}}});
}

Status set_compat(Config& config, const std::string& text) {
  for (const char* known : {"", "dcgm", "hami", "dcgm,hami", "hami,dcgm"})
    if (text == known) {
      config.compat = text;
      return {};
    }
  return wrong(text, "dcgm or hami or dcgm,hami");
}

Status set_level(Config& config, const std::string& text) {
  using log::Level;
  return one_of(config.log_level, text,
                std::array<std::pair<std::string_view, Level>, 4>{{{"debug", Level::kDebug},
                                                                   {"info", Level::kInfo},
                                                                   {"warning", Level::kWarning},
                                                                   {"error", Level::kError}}});
}

template <std::filesystem::path Config::* M>
Status set_path(Config& config, const std::string& text) {
  if (!text.empty() && text.front() != '/') return wrong(text, "an absolute path");
  config.*M = text;
  return {};
}

template <std::string Config::* M>
Status set_text(Config& config, const std::string& text) {
  config.*M = text;
  return {};
}

template <auto M>
bool same(const Config& a, const Config& b) {
  return a.*M == b.*M;
}

constexpr ConfigKey kKeys[] = {
    {"state_directory", "PATH", "Where leases, sockets and state lie", false,
     set_path<&Config::state_directory>, same<&Config::state_directory>},
    {"cache_directory", "PATH", "What is to outlive a reboot", false,
     set_path<&Config::cache_directory>, same<&Config::cache_directory>},
    {"sim", "NAME", "Serve this running simulated machine", false, set_text<&Config::sim>,
     same<&Config::sim>},
    {"kubelet", "auto|yes|no", "Serve kubelet (auto: where its directory is)", false, set_kubelet,
     same<&Config::kubelet>},
    {"kubelet_directory", "PATH", "Kubelet's root directory", false,
     set_path<&Config::kubelet_directory>, same<&Config::kubelet_directory>},
    {"resource", "NAME", "What pods ask for", false, set_text<&Config::resource>,
     same<&Config::resource>},
    {"slots_per_gpu", "N", "Most shares of one GPU that kubelet gives out", false, set_slots,
     same<&Config::slots_per_gpu>},
    {"health_check_interval", "TIME", "Between looks at a healthy GPU", true,
     set_interval<&Config::health_check_interval>, same<&Config::health_check_interval>},
    {"health_quiet", "TIME", "How long after its last XID or ECC error a GPU may recover", true,
     set_interval<&Config::health_quiet>, same<&Config::health_quiet>},
    {"unhealthy_taint", "EFFECT", "Taint the node so while a GPU is not usable; empty: no taint",
     false, set_taint, same<&Config::unhealthy_taint>},
    {"on_unleased", "report|end",
     "What happens to a container's process that uses a GPU past its share", false, set_unleased,
     same<&Config::on_unleased>},
    {"enforce", "on|observe", "Observe: count what would be refused of memory, refuse nothing",
     true, set_enforce, same<&Config::observe>},
    {"observe", "NAMESPACE[/POD],...", "Only observe these", true, set_observed,
     same<&Config::observe>},
    {"nvidia_replicas", "N", "Serve each GPU N times as nvidia.com/gpu too; 1: whole, 0: not",
     false, set_replicas, same<&Config::nvidia_replicas>},
    {"allocator_strategy", "binpack|spread", "Which slots kubelet is told to prefer", false,
     set_strategy, same<&Config::allocator_strategy>},
    {"default_memory_unit", "SIZE",
     "What a bare number of memory counts; without it a unit is asked for", false, set_unit,
     same<&Config::default_memory_unit>},
    {"injection", "cdi|mounts", "How containers get their lease (mounts: runtimes without CDI)",
     false, set_injection, same<&Config::injection>},
    {"cdi_directory", "PATH", "Where the runtime reads CDI specifications", false,
     set_path<&Config::cdi_directory>, same<&Config::cdi_directory>},
    {"node_name", "NAME", "This node in the API server; empty: pods come from kubelet", false,
     set_text<&Config::node_name>, same<&Config::node_name>},
    {"kubeconfig", "PATH", "How to reach the API server; empty: $KUBECONFIG, else in-cluster",
     false, set_path<&Config::kubeconfig>, same<&Config::kubeconfig>},
    {"kubelet_url", "URL", "Kubelet's own list of pods, without an API server", false,
     set_text<&Config::kubelet_url>, same<&Config::kubelet_url>},
    {"metrics_address", "IP:PORT", "Where /metrics and /healthz are served; empty: nowhere", false,
     set_text<&Config::metrics_address>, same<&Config::metrics_address>},
    {"compat", "dcgm|hami|dcgm,hami", "Serve metrics under these systems' names as well", false,
     set_compat, same<&Config::compat>},
    {"dcgm_url", "URL", "dcgm-exporter whose profiling figures are served as well", false,
     set_text<&Config::dcgm_url>, same<&Config::dcgm_url>},
    {"log_level", "debug|info|warning|error", "What is said", false, set_level,
     same<&Config::log_level>},
};

Status read_ini(Config& config, std::string_view text, std::string_view where) {
  unsigned number = 0;
  bool ours = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string place = std::string(where) + ":" + std::to_string(++number);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      ours = line == "[DevicePlugin]";
      if (!ours) return unknown_section(place, line);
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!ours || equals == std::string::npos)
      return Error{Errc::kInvalid, place + ": expected KEY = VALUE in [DevicePlugin]"};
    const Status set = set_key_of(config, trimmed(std::string_view(line).substr(0, equals)),
                                  trimmed(std::string_view(line).substr(equals + 1)), place);
    if (!set) return set;
  }
  return {};
}

std::string text_of(const format::Json& value) {
  if (const std::string* text = value.if_string()) return *text;
  return value.is_null() ? std::string() : value.dump();
}

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }

Status set_key_of(Config& config, std::string_view name, const std::string& text,
                  std::string_view where) {
  std::string plain(name);
  std::ranges::replace(plain, '-', '_');
  const auto keys = config_keys();
  const auto key = std::ranges::find(keys, plain, &ConfigKey::name);
  if (key == keys.end()) {
    std::string known;
    for (const ConfigKey& one : keys) known += (known.empty() ? "" : ", ") + std::string(one.name);
    return Error{Errc::kInvalid,
                 std::string(where) + ": there is no key \"" + plain + "\"; there are: " + known};
  }
  const Status set = key->set(config, text);
  if (set) return {};
  return Error{Errc::kInvalid, std::string(where) + ": " + plain + " " + set.error().message};
}

Status read_config(Config& config, std::string_view text, std::string_view where) {
  // INI begins with a section; YAML's first character of a mapping is none.
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = trimmed(text.substr(at, end - at));
    if (!line.empty() && line.front() == '[') return read_ini(config, text, where);
    if (!line.empty() && line.front() != '#' && line.front() != ';') break;
    at = end + 1;
  }
  const auto json = format::parse_yaml(text, where);
  if (!json) return json.error();
  if (json->is_null()) return {};
  const format::Json::Object* object = json->if_object();
  if (object == nullptr)
    return Error{Errc::kInvalid, std::string(where) + ": expected keys with values"};
  for (const auto& member : *object)
    if (const Status set = set_key_of(config, member.key, text_of(member.value), where); !set)
      return set;
  return {};
}

std::vector<std::string> keys_for_restart(const Config& before, const Config& after) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys())
    if (!key.reloadable && !key.same(before, after)) names.emplace_back(key.name);
  return names;
}

}  // namespace aliquot::node
