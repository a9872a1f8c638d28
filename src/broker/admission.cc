#include "broker/admission.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>

#include "gate/terms.h"

namespace aliquot::broker {
namespace {

using model::memory_text;

std::uint64_t less(std::uint64_t from, std::uint64_t what) { return from > what ? from - what : 0; }

std::string room_text(const RoomRow& row) {
  if (!row.trouble.empty()) return "gpu " + std::to_string(row.index) + " not known";
  std::string text = "gpu " + std::to_string(row.index) + " " + memory_text(row.room_bytes);
  if (row.room_cores != model::kWholeGpu) text += " and " + model::cores_text(row.room_cores);
  return text;
}

std::string free_everywhere(const std::vector<RoomRow>& rooms) {
  std::string text;
  for (const RoomRow& row : rooms) text += (text.empty() ? "" : ", ") + room_text(row);
  return "free for new shares: " + (text.empty() ? "no GPU" : text);
}

std::string why_little(const RoomRow& row) {
  std::string text = memory_text(row.total_bytes) + " in all, " + memory_text(row.promised_bytes) +
                     " promised to " + std::to_string(row.leases) +
                     (row.leases == 1 ? " lease" : " leases");
  if (row.room_bytes < less(row.total_bytes, row.promised_bytes))
    text += ", " + memory_text(row.measured_free_bytes) + " measured free";
  return text;
}

std::uint32_t needed_cores(const RoomRow& row, std::uint32_t cores, std::uint32_t weight) {
  GpuSettings settings;
  settings.policy = row.policy;
  settings.max_inst = row.max_inst;
  return guaranteed_cores(settings, cores, weight);
}

// Bytes and cores that one share wants of one GPU; 0 bytes: can never be.
bool fits(const ShareRequest& share, std::uint32_t weight, const RoomRow& row) {
  const std::uint64_t bytes = share.memory.bytes_of(row.total_bytes);
  return row.trouble.empty() && bytes > 0 && bytes <= row.room_bytes &&
         needed_cores(row, share.cores, weight) <= row.room_cores;
}

Result<std::size_t> find_gpu(const std::string& name, const std::vector<RoomRow>& rooms) {
  unsigned index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool number = error == std::errc() && end == name.data() + name.size();
  for (std::size_t i = 0; i < rooms.size(); ++i)
    if (number ? rooms[i].index == index : rooms[i].uuid == name) return i;
  return Error{Errc::kNotFound, "find gpu " + name + ": this machine has " +
                                    (rooms.empty() ? std::string("none")
                                                   : "0.." + std::to_string(rooms.size() - 1))};
}

Status check_size(const ShareRequest& share, const RoomRow& row) {
  const std::uint64_t bytes = share.memory.bytes_of(row.total_bytes);
  if (bytes > row.total_bytes)
    return Error{Errc::kInvalid, "share gpu " + std::to_string(row.index) + ": it has " +
                                     memory_text(row.total_bytes) + ", " + memory_text(bytes) +
                                     " were asked"};
  if (bytes == 0)
    return Error{Errc::kInvalid, "share gpu " + std::to_string(row.index) + ": 0 bytes were asked"};
  return {};
}

std::string asked_text(const ShareRequest& share, std::uint32_t weight, const RoomRow& row) {
  std::string text = memory_text(share.memory.bytes_of(row.total_bytes));
  if (const std::uint32_t cores = needed_cores(row, share.cores, weight); cores != 0)
    text += " and " + model::cores_text(cores);
  return text;
}

struct Choice {
  std::size_t gpu;    // index into rooms
  std::size_t share;  // index into request.shares
};

Result<std::vector<Choice>> named_shares(const LeaseRequest& request,
                                         const std::vector<RoomRow>& rooms) {
  std::vector<Choice> chosen;
  for (std::size_t i = 0; i < request.shares.size(); ++i) {
    const ShareRequest& share = request.shares[i];
    if (share.gpu.empty()) continue;
    const auto gpu = find_gpu(share.gpu, rooms);
    if (!gpu) return gpu.error();
    const RoomRow& row = rooms[*gpu];
    if (std::ranges::any_of(chosen, [&](const Choice& c) { return c.gpu == *gpu; }))
      return Error{Errc::kInvalid, "share gpu " + share.gpu + ": it is named twice"};
    if (!row.trouble.empty())
      return Error{Errc::kUnavailable,
                   "share gpu " + std::to_string(row.index) +
                       ": what is free there is not known, " + row.trouble +
                       "; try again in some seconds, ask for another GPU, or see " +
                       "`aliquot doctor`"};
    if (const Status size = check_size(share, row); !size) return size.error();
    if (!fits(share, request.weight, row))
      return Error{Errc::kExhausted, "share gpu " + std::to_string(row.index) + ": " +
                                         asked_text(share, request.weight, row) + " asked, " +
                                         room_text(row) + " left (" + why_little(row) + "); " +
                                         free_everywhere(rooms) +
                                         "; ask for less, another GPU, or --wait"};
    chosen.push_back({*gpu, i});
  }
  return chosen;
}

// Shares without a GPU are alike (the CLI gives all of them the same size): the largest decides
// which GPUs fit.
Status choose_rest(const LeaseRequest& request, const std::vector<RoomRow>& rooms,
                   const Chooser& choose, std::vector<Choice>& chosen) {
  std::vector<std::size_t> shares;
  for (std::size_t i = 0; i < request.shares.size(); ++i)
    if (request.shares[i].gpu.empty()) shares.push_back(i);
  if (shares.empty()) return {};
  std::vector<RoomRow> fitting;
  std::vector<std::size_t> place;
  bool ever = false, unknown = false;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    if (std::ranges::any_of(chosen, [&](const Choice& c) { return c.gpu == i; })) continue;
    const auto all = [&](auto test) {
      return std::ranges::all_of(shares, [&](std::size_t s) { return test(request.shares[s]); });
    };
    unknown |= !rooms[i].trouble.empty();
    ever |= all([&](const ShareRequest& s) { return static_cast<bool>(check_size(s, rooms[i])); });
    if (!all([&](const ShareRequest& s) { return fits(s, request.weight, rooms[i]); })) continue;
    fitting.push_back(rooms[i]);
    place.push_back(i);
  }
  if (fitting.size() < shares.size()) {
    const ShareRequest& share = request.shares[shares.front()];
    // One of which nothing is known may have room the next time.
    const bool never = (!ever && !unknown) || rooms.size() < request.shares.size();
    const std::string asked =
        rooms.empty() ? std::string("a share") : asked_text(share, request.weight, rooms.front());
    return Error{never ? Errc::kInvalid : Errc::kExhausted,
                 "find " + std::to_string(shares.size()) + (shares.size() == 1 ? " GPU" : " GPUs") +
                     " with " + asked + " each: " + std::to_string(fitting.size()) + " of " +
                     std::to_string(rooms.size()) + " fit; " + free_everywhere(rooms) +
                     (never ? "" : "; ask for less, or --wait")};
  }
  std::vector<std::size_t> picks = choose(fitting, shares.size());
  // The chooser is another room's code; a wrong answer of it must not double-book.
  std::vector<std::size_t> distinct = picks;
  std::ranges::sort(distinct);
  if (picks.size() != shares.size() || distinct.back() >= fitting.size() ||
      std::ranges::adjacent_find(distinct) != distinct.end())
    picks = least_room(fitting, shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i)
    chosen.push_back({place.at(picks.at(i)), shares[i]});
  return {};
}

}  // namespace

std::uint32_t guaranteed_cores(const GpuSettings& settings, std::uint32_t cores,
                               std::uint32_t weight) {
  const gate::TenantTerms terms{.cores_percent = cores / 100.0, .weight = std::max(1u, weight)};
  const gate::GpuTerms gpu{.policy = static_cast<gate::Policy>(settings.policy),
                           .max_inst = settings.max_inst};
  return static_cast<std::uint32_t>(gate::guaranteed_percent(terms, gpu) * 100.0);
}

std::vector<RoomRow> rooms(const std::vector<ProbedGpu>& gpus,
                           const std::vector<GpuPromises>& promised) {
  std::vector<RoomRow> rows;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RoomRow row;
    row.index = static_cast<std::uint32_t>(i);
    row.uuid = gpus[i].uuid;
    row.name = gpus[i].name;
    row.trouble = gpus[i].trouble;
    row.total_bytes = gpus[i].total_bytes;
    row.measured_free_bytes = gpus[i].free_bytes;
    std::uint64_t not_yet_taken = 0, cores = 0;
    for (const Promised& share : promised[i].shares) {
      row.promised_bytes += share.limit_bytes;
      not_yet_taken += less(share.limit_bytes, share.used_bytes);
      cores += share.cores;
    }
    row.leases = static_cast<std::uint32_t>(promised[i].shares.size());
    row.room_bytes = std::min(less(row.total_bytes, row.promised_bytes),
                              less(row.measured_free_bytes, not_yet_taken));
    row.room_cores = static_cast<std::uint32_t>(less(promised[i].settings.most_cores, cores));
    row.policy = promised[i].settings.policy;
    row.max_inst = promised[i].settings.max_inst;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::size_t> least_room(const std::vector<RoomRow>& fitting, std::size_t count) {
  std::vector<std::size_t> order(fitting.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::tuple(fitting[i].room_bytes, fitting[i].room_cores, fitting[i].index);
  });
  order.resize(std::min(count, order.size()));
  return order;
}

Result<std::vector<LeaseGpu>> admit(const LeaseRequest& request, const std::vector<RoomRow>& rooms,
                                    const std::vector<ProbedGpu>& gpus, const Chooser& choose) {
  if (request.shares.empty() || request.shares.size() > wire::kMaxGpus)
    return Error{Errc::kInvalid, "create a lease: it needs 1.." + std::to_string(wire::kMaxGpus) +
                                     " GPUs, " + std::to_string(request.shares.size()) +
                                     " were asked"};
  auto chosen = named_shares(request, rooms);
  if (!chosen) return chosen.error();
  if (const Status rest = choose_rest(request, rooms, choose, *chosen); !rest) return rest.error();
  std::ranges::sort(*chosen, {}, &Choice::gpu);
  std::vector<LeaseGpu> granted;
  for (const Choice& choice : *chosen) {
    const ShareRequest& share = request.shares[choice.share];
    const ProbedGpu& gpu = gpus[choice.gpu];
    granted.push_back({rooms[choice.gpu].index, gpu.uuid, gpu.total_bytes,
                       gpu.context_overhead_bytes, gpu.time_scale_micro,
                       share.memory.bytes_of(gpu.total_bytes), share.cores});
  }
  return granted;
}

Status admit_change(const RoomRow& row, std::uint64_t own_bytes, std::uint64_t bytes) {
  const std::string what =
      "set the memory on gpu " + std::to_string(row.index) + " to " + memory_text(bytes) + ": ";
  if (bytes == 0) return Error{Errc::kInvalid, what + "a share is at least 1 byte"};
  if (bytes > row.total_bytes)
    return Error{Errc::kInvalid, what + "it has " + memory_text(row.total_bytes)};
  if (bytes <= own_bytes || bytes - own_bytes <= row.room_bytes) return {};
  return Error{Errc::kExhausted, what + "it is " + memory_text(own_bytes) + " now and " +
                                     memory_text(row.room_bytes) + " more are free (" +
                                     why_little(row) + ")"};
}

}  // namespace aliquot::broker
