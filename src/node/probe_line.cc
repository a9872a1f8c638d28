#include "node/probe_line.h"

#include <utility>

#include "format/json.h"

namespace aliquot::node {
namespace {

using format::Json;

// One list of fields for both directions: what is written is what is read.
class Writer {
 public:
  template <typename T>
  void operator()(const char* key, const T& value) {
    json_.set(key, value);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) json_.set(key, *value);
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* key, T& value) {
    if (const Json* found = json_.find(key)) read(*found, value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (const Json* found = json_.find(key)) read(*found, value.emplace());
  }

 private:
  static void read(const Json& json, bool& value) {
    if (const bool* found = json.if_bool()) value = *found;
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  static void read(const Json& json, T& value) {
    if (const std::int64_t* found = json.if_int()) value = static_cast<T>(*found);
    if (const std::uint64_t* found = json.if_big()) value = static_cast<T>(*found);
  }

  const Json& json_;
};

template <typename V, typename M>
void describe_memory(V& v, M& memory) {
  v("total", memory.total_bytes), v("reserved", memory.reserved_bytes);
  v("used", memory.used_bytes), v("free", memory.free_bytes);
}

template <typename V, typename S>
void describe_state(V& v, S& s) {
  describe_memory(v, s.memory);
  v("gpu_percent", s.gpu_percent), v("memory_percent", s.memory_percent);
  v("power_mw", s.power_mw), v("power_limit_mw", s.power_limit_mw), v("energy_mj", s.energy_mj);
  v("temperature_c", s.temperature_c), v("fan_percent", s.fan_percent);
  v("sm_mhz", s.sm_mhz), v("sm_max_mhz", s.sm_max_mhz), v("memory_mhz", s.memory_mhz);
  v("clock_reasons", s.clock_reasons);
  v("performance_state", s.performance_state);
  v("pcie_generation", s.pcie_generation), v("pcie_width", s.pcie_width);
  v("persistence", s.persistence), v("ecc", s.ecc), v("ecc_uncorrected", s.ecc_uncorrected);
  v("mig", s.mig), v("compute_mode", s.compute_mode);
  v("bar1", s.bar1_bytes), v("bar1_used", s.bar1_used_bytes);
}

template <typename V, typename H>
void describe_health(V& v, H& h) {
  v("answered", h.answered), v("off_bus", h.off_bus), v("uncorrected", h.uncorrected);
  v("remap_failed", h.remap_failed), v("remap_pending", h.remap_pending);
  v("nvlink_errors", h.nvlink_errors);
  v("temperature_c", h.temperature_c), v("slowdown_c", h.slowdown_c);
}

Json processes_json(const std::vector<inventory::NvmlProcess>& processes) {
  Json list = Json::array();
  for (const inventory::NvmlProcess& process : processes) {
    Writer one;
    one("pid", std::int64_t{process.pid}), one("bytes", process.bytes);
    one("kind", static_cast<unsigned>(process.kind));
    list.append(one.take());
  }
  return list;
}

template <typename V, typename U>
void describe_use(V& v, U& use) {
  v("pid", use.pid), v("at_us", use.at_us), v("percent", use.percent);
}

Json use_json(const std::vector<inventory::NvmlUse>& samples) {
  Json list = Json::array();
  for (const inventory::NvmlUse& sample : samples) {
    Writer one;
    describe_use(one, sample);
    list.append(one.take());
  }
  return list;
}

Json held_json(const inventory::NvmlHeld& held) {
  Writer memory;
  describe_memory(memory, held.memory);
  return memory.take().set("processes", processes_json(held.processes));
}

Json reading_json(const GpuReading& reading) {
  Writer state, health;
  describe_state(state, reading.state);
  describe_health(health, reading.health);
  Json links = Json::array();
  for (const bool up : reading.health.nvlinks_up) links.append(up);
  return Json::object()
      .set("state", state.take().set("processes", processes_json(reading.state.processes)))
      .set("health", health.take().set("nvlinks_up", links));
}

const Json::Array& items(const Json& json, const char* key) {
  static const Json::Array none;
  const Json* found = json.find(key);
  const Json::Array* list = found != nullptr ? found->if_array() : nullptr;
  return list != nullptr ? *list : none;
}

std::vector<inventory::NvmlProcess> processes_of(const Json& json) {
  std::vector<inventory::NvmlProcess> processes;
  for (const Json& item : items(json, "processes")) {
    Reader one(item);
    inventory::NvmlProcess process;
    unsigned kind = 0;
    one("pid", process.pid), one("bytes", process.bytes), one("kind", kind);
    process.kind = kind <= 2 ? inventory::ProcessKind{static_cast<std::uint8_t>(kind)}
                             : inventory::ProcessKind::kCompute;
    processes.push_back(process);
  }
  return processes;
}

GpuReading reading_of(const Json& state_json, const Json& health_json) {
  GpuReading reading;
  Reader state(state_json), health(health_json);
  describe_state(state, reading.state);
  describe_health(health, reading.health);
  reading.state.processes = processes_of(state_json);
  for (const Json& item : items(health_json, "nvlinks_up"))
    if (const bool* up = item.if_bool()) reading.health.nvlinks_up.push_back(*up);
  return reading;
}

}  // namespace

std::string probe_line_text(const ProbeLine& line) {
  Json json = Json::object();
  if (line.reading) json.set("reading", reading_json(*line.reading));
  if (line.held) json.set("held", held_json(*line.held));
  if (line.xid) json.set("xid", *line.xid);
  if (!line.use.empty()) json.set("use", use_json(line.use));
  if (!line.error.empty()) json.set("error", line.error);
  return json.dump();
}

Result<ProbeLine> parse_probe_line(std::string_view text) {
  const auto json = format::parse_json(text, "a probe's line");
  if (!json) return json.error();
  ProbeLine line;
  if (const Json* reading = json->find("reading")) {
    const Json* state = reading->find("state");
    const Json* health = reading->find("health");
    if (state == nullptr || health == nullptr)
      return Error{Errc::kInvalid, "a probe's line: a reading has state and health"};
    line.reading = reading_of(*state, *health);
  }
  if (const Json* held = json->find("held")) {
    Reader memory(*held);
    describe_memory(memory, line.held.emplace().memory);
    line.held->processes = processes_of(*held);
  }
  for (const Json& item : items(*json, "use")) {
    Reader sample(item);
    describe_use(sample, line.use.emplace_back());
  }
  Reader rest(*json);
  rest("xid", line.xid);
  if (const Json* error = json->find("error"))
    if (const std::string* words = error->if_string()) line.error = *words;
  return line;
}

}  // namespace aliquot::node
