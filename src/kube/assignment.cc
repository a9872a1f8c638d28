#include "kube/assignment.h"

#include <algorithm>
#include <charconv>

#include "format/fields.h"

namespace aliquot::kube {

namespace {

using format::Fields;
using format::Json;

constexpr int kVersion = 1;
constexpr std::size_t kLongestText = 64u << 10;  // annotations of one object: 256 KiB in all
constexpr std::uint32_t kLargestWeight = 1000;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

Error refused(std::string_view annotation, std::string_view word, std::string_view why) {
  return Error{Errc::kInvalid,
               std::string(annotation) + ": '" + std::string(word) + "': " + std::string(why)};
}

Result<AssignedGpu> read_gpu(const Json& object, const std::string& where) {
  AssignedGpu gpu;
  Fields fields(object, where);
  fields.required("uuid", gpu.uuid).required("memory_bytes", gpu.memory_bytes);
  fields.optional("cores", gpu.cores);
  if (gpu.uuid.empty()) fields.reject("uuid", "is empty");
  if (gpu.memory_bytes == 0 || gpu.memory_bytes > model::kLargestMemory)
    fields.reject("memory_bytes", "out of range");
  if (gpu.cores > model::kWholeGpu) fields.reject("cores", "more than 10000, which is a whole GPU");
  if (const Status read = fields.done(); !read) return read.error();
  return gpu;
}

Result<ContainerAssignment> read_container(const Json& object, const std::string& where) {
  ContainerAssignment out;
  std::vector<Json> gpus;
  Fields fields(object, where);
  fields.required("name", out.container).required("gpus", gpus);
  if (out.container.empty()) fields.reject("name", "is empty");
  if (gpus.empty()) fields.reject("gpus", "is empty");
  if (const Status read = fields.done(); !read) return read.error();
  for (const Json& item : gpus) {
    Result<AssignedGpu> gpu = read_gpu(item, where + "." + out.container);
    if (!gpu) return gpu.error();
    if (std::ranges::find(out.gpus, gpu->uuid, &AssignedGpu::uuid) != out.gpus.end())
      return Error{Errc::kInvalid, where + "." + out.container + ": " + gpu->uuid + " twice"};
    out.gpus.push_back(*std::move(gpu));
  }
  return out;
}

// "4GiB" for every container, "main=1GiB" for one, separated by commas. The word for `container`:
// its own before the one for all; empty where there is neither.
Result<std::string_view> word_for(std::string_view annotation, std::string_view text,
                                  std::string_view container) {
  std::optional<std::string_view> own;
  std::optional<std::string_view> all;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = trimmed(text.substr(0, comma));
    const std::size_t equals = word.find('=');
    const std::string_view name =
        equals == std::string_view::npos ? std::string_view() : trimmed(word.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? word : trimmed(word.substr(equals + 1));
    if (value.empty() || (equals != std::string_view::npos && name.empty()))
      return refused(annotation, word, "expected AMOUNT or CONTAINER=AMOUNT");
    std::optional<std::string_view>& slot = equals == std::string_view::npos ? all : own;
    if (equals == std::string_view::npos || name == container) {
      if (slot) return refused(annotation, word, "said twice for one container");
      slot = value;
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return own ? *own : all.value_or(std::string_view());
}

Result<std::int64_t> amount(const Container& container, std::string_view resource,
                            std::int64_t most) {
  if (container.limits.find(resource) == container.limits.end()) return 0;
  const std::int64_t found = container.limit(resource);
  if (found < 1 || found > most)
    return Error{Errc::kInvalid, "container " + container.name + ": " + std::string(resource) +
                                     " must be a whole number from 1 to " + std::to_string(most)};
  return found;
}

// From the limits of the container, for what no annotation said.
Status add_limits(const Container& container, ShareAsk& ask) {
  const Result<std::int64_t> mib =
      amount(container, kMemoryResource, static_cast<std::int64_t>(model::kLargestMemory >> 20));
  if (!mib) return mib.error();
  const Result<std::int64_t> percent = amount(container, kCoresResource, 100);
  if (!percent) return percent.error();
  if (*mib > 0 && !ask.memory)
    ask.memory = model::MemoryQuantity{model::MemoryQuantity::Kind::kBytes,
                                       static_cast<std::uint64_t>(*mib) * model::kMiB};
  if (*percent > 0 && !ask.cores) ask.cores = static_cast<std::uint32_t>(*percent) * 100;
  return {};
}

Result<std::uint32_t> parse_weight(std::string_view text) {
  std::uint32_t weight = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, weight);
  if (error != std::errc() || stop != end || weight == 0 || weight > kLargestWeight)
    return Error{Errc::kInvalid, "expected a whole number from 1 to 1000"};
  return weight;
}

Result<model::MemoryQuantity> memory_of(std::string_view text, BareMemory bare) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_bare = error == std::errc() && stop == end;
  if (!is_bare || bare.unit_bytes == 0) return model::parse_memory(text);
  std::uint64_t bytes = 0;
  if (number == 0 || __builtin_mul_overflow(number, bare.unit_bytes, &bytes) ||
      bytes > model::kLargestMemory)
    return Error{Errc::kInvalid, "out of range"};
  return model::MemoryQuantity{model::MemoryQuantity::Kind::kBytes, bytes};
}

Status set_share_word(std::string_view key, std::string_view value, BareMemory bare,
                      ShareAsk& ask) {
  const auto put = [](auto result, auto& slot) -> Status {
    if (!result) return result.error();
    if (slot) return Error{Errc::kInvalid, "said twice"};
    slot = *result;
    return {};
  };
  if (key == "memory") return put(memory_of(value, bare), ask.memory);
  if (key == "cores") return put(model::parse_cores(value), ask.cores);
  if (key == "weight") return put(parse_weight(value), ask.weight);
  if (key == "class") {
    if (value == "online") return put(Result<Class>(Class::kOnline), ask.share_class);
    if (value == "offline") return put(Result<Class>(Class::kOffline), ask.share_class);
    return Error{Errc::kInvalid, "expected online or offline"};
  }
  return Error{Errc::kInvalid, "expected memory, cores, weight or class"};
}

// What is said for one container before what is said for all.
ShareAsk merged(const ShareAsk& own, const ShareAsk& all) {
  ShareAsk out = own;
  if (!out.memory) out.memory = all.memory;
  if (!out.cores) out.cores = all.cores;
  if (!out.weight) out.weight = all.weight;
  if (!out.share_class) out.share_class = all.share_class;
  return out;
}

}  // namespace

const ContainerAssignment* Assignment::of(std::string_view container) const {
  const auto at = std::ranges::find(containers, container, &ContainerAssignment::container);
  return at == containers.end() ? nullptr : &*at;
}

Result<Assignment> parse_assignment(std::string_view text) {
  const std::string where(kAssignmentAnnotation);
  if (text.size() > kLongestText) return Error{Errc::kInvalid, where + ": more than 64 KiB"};
  const Result<Json> json = format::parse_json(text, where);
  if (!json) return json.error();
  int version = 0;
  std::vector<Json> items;
  Fields fields(*json, where);
  fields.required("version", version);
  // A newer writer may mean something else by the same keys: told before they are read.
  if (version != kVersion)
    fields.reject("version", "is not 1, the only one this program understands: update the node");
  fields.required("containers", items);
  if (const Status read = fields.done(); !read) return read.error();
  Assignment out;
  for (const Json& item : items) {
    Result<ContainerAssignment> container = read_container(item, where);
    if (!container) return container.error();
    if (out.of(container->container) != nullptr)
      return Error{Errc::kInvalid, where + ": container " + container->container + " twice"};
    out.containers.push_back(*std::move(container));
  }
  return out;
}

std::string assignment_text(const Assignment& assignment) {
  Json containers = Json::array();
  for (const ContainerAssignment& container : assignment.containers) {
    Json gpus = Json::array();
    for (const AssignedGpu& gpu : container.gpus) {
      Json object = Json::object();
      object.set("uuid", gpu.uuid).set("memory_bytes", gpu.memory_bytes);
      if (gpu.cores != 0) object.set("cores", gpu.cores);
      gpus.append(std::move(object));
    }
    containers.append(Json::object().set("name", container.container).set("gpus", std::move(gpus)));
  }
  return Json::object().set("version", kVersion).set("containers", std::move(containers)).dump();
}

Result<ShareAsk> ask_of(const Pod& pod, const Container& container, BareMemory bare) {
  ShareAsk ask;
  if (const std::string* text = pod.annotation(kMemoryAnnotation)) {
    const Result<std::string_view> word = word_for(kMemoryAnnotation, *text, container.name);
    if (!word) return word.error();
    if (!word->empty()) {
      const Result<model::MemoryQuantity> memory = memory_of(*word, bare);
      if (!memory) return refused(kMemoryAnnotation, *word, memory.error().message);
      ask.memory = *memory;
    }
  }
  if (const std::string* text = pod.annotation(kCoresAnnotation)) {
    const Result<std::string_view> word = word_for(kCoresAnnotation, *text, container.name);
    if (!word) return word.error();
    if (!word->empty()) {
      const Result<std::uint32_t> cores = model::parse_cores(*word);
      if (!cores) return refused(kCoresAnnotation, *word, cores.error().message);
      ask.cores = *cores;
    }
  }
  if (const Status added = add_limits(container, ask); !added) return added.error();
  return ask;
}

Result<std::optional<ShareAsk>> share_change(const Pod& pod, const Container& container,
                                             BareMemory bare) {
  const std::string* annotation = pod.annotation(kShareAnnotation);
  if (annotation == nullptr) return std::optional<ShareAsk>();
  std::string_view text = *annotation;
  ShareAsk own;
  ShareAsk all;
  bool said = false;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = trimmed(text.substr(0, comma));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return refused(kShareAnnotation, word, "expected KEY=VALUE or CONTAINER.KEY=VALUE");
    std::string_view key = trimmed(word.substr(0, equals));
    const std::size_t dot = key.find('.');  // a container's name has none
    const std::string_view name = dot == std::string_view::npos ? "" : key.substr(0, dot);
    if (dot != std::string_view::npos) key.remove_prefix(dot + 1);
    const bool ours = dot == std::string_view::npos || name == container.name;
    ShareAsk other;
    ShareAsk& into = dot == std::string_view::npos ? all : ours ? own : other;
    if (const Status set = set_share_word(key, trimmed(word.substr(equals + 1)), bare, into); !set)
      return refused(kShareAnnotation, word, set.error().message);
    said = said || ours;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (!said) return std::optional<ShareAsk>();
  return std::optional<ShareAsk>(merged(own, all));
}

}  // namespace aliquot::kube
