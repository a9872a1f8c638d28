#include "node/slots.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>

namespace aliquot::node {
namespace {

constexpr std::string_view kBetween = "::";

// FNV-1a, 64 bits: ids are ours, nobody chooses them to collide.
std::uint64_t hash_of(const std::vector<std::string>& ids) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](unsigned char c) { hash = (hash ^ c) * 0x100000001b3; };
  for (const std::string& id : ids) {
    for (const char c : id) add(static_cast<unsigned char>(c));
    add(0);
  }
  return hash;
}

}  // namespace

std::string slot_id(const Slot& slot) {
  return slot.uuid + std::string(kBetween) + std::to_string(slot.number);
}

std::optional<Slot> parse_slot_id(std::string_view id) {
  const std::size_t at = id.rfind(kBetween);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view digits = id.substr(at + kBetween.size());
  Slot slot{std::string(id.substr(0, at)), 0};
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, slot.number);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return slot;
}

std::string set_key(std::vector<std::string> ids) {
  std::ranges::sort(ids);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_of(ids)));
  return text;
}

bool are_nvidia(const std::vector<std::string>& ids) {
  return std::ranges::all_of(ids, [](const std::string& id) {
    const auto slot = parse_slot_id(id);
    return slot && slot->number >= kNvidiaSlots;
  });
}

std::vector<std::string> gpus_of(const std::vector<std::string>& ids) {
  std::vector<std::string> gpus;
  for (const std::string& id : ids)
    if (const auto slot = parse_slot_id(id);
        slot && std::ranges::find(gpus, slot->uuid) == gpus.end())
      gpus.push_back(slot->uuid);
  return gpus;
}

std::string unlike_slots(const std::vector<std::string>& ids, const std::vector<std::string>& gpus,
                         unsigned slots_per_gpu) {
  std::map<std::string, unsigned> found;
  for (const std::string& uuid : gpus) found[uuid] = 0;
  for (const std::string& id : ids)
    if (const auto slot = parse_slot_id(id)) ++found[slot->uuid];
  std::string text;
  for (const auto& [uuid, count] : found) {
    const unsigned expected = std::ranges::find(gpus, uuid) != gpus.end() ? slots_per_gpu : 0;
    if (count != expected)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " +
              std::to_string(expected) + " slots of " + uuid;
  }
  return text;
}

}  // namespace aliquot::node
