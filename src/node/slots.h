// Slots: what kubelet counts. Each GPU offers a number of them, and a container that asks for
// aliquot.dev/gpu: N gets N. A slot says how many shares there can be, not how large they are.
//
// A slot's id is "UUID::N"; kubelet takes ids of at most 63 characters, in any order. What belongs
// to a set of ids (a lease, a CDI device) is named after the set: kubelet tells nothing else at
// Allocate. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aliquot::node {

// Resources of one plugin number their slots apart, so that an id names its resource too: those of
// nvidia.com/gpu begin here.
inline constexpr unsigned kNvidiaSlots = 10'000;
inline constexpr const char* kNvidiaResource = "nvidia.com/gpu";

struct Slot {
  std::string uuid;  // of the GPU
  unsigned number = 0;
  bool operator==(const Slot&) const = default;
};

std::string slot_id(const Slot& slot);
std::optional<Slot> parse_slot_id(std::string_view id);

// 16 hexadecimal digits that name the set, whatever its order.
std::string set_key(std::vector<std::string> ids);

// They are slots of nvidia.com/gpu.
bool are_nvidia(const std::vector<std::string>& ids);

// The GPUs of the slots: each once, in the order in which they first occur. Ids of no slot are
// left out.
std::vector<std::string> gpus_of(const std::vector<std::string>& ids);

// In words, how the ids differ from all slots of the GPUs: "0 of 16 slots of GPU-a"; empty: not.
std::string unlike_slots(const std::vector<std::string>& ids, const std::vector<std::string>& gpus,
                         unsigned slots_per_gpu);

}  // namespace aliquot::node
