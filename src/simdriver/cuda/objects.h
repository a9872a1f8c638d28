// What the handles of the simulated libcuda point to. A handle is the object's address; a
// Registry knows which addresses are objects, so that a wrong or stale handle is an error and not
// a crash. Everything here is under the library's lock (library.h).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "driver_abi/cuda_types.h"
#include "simdriver/channel/messages.h"
#include "simdriver/channel/ring.h"
#include "simdriver/cuda/range_map.h"

namespace aliquot::simdriver {

// Owns the objects of one kind of handle.
template <typename T>
class Registry {
 public:
  T* add(std::unique_ptr<T> object) {
    T* at = object.get();
    objects_[at] = std::move(object);
    return at;
  }
  // nullptr: no such object.
  T* find(const void* handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second.get();
  }
  std::unique_ptr<T> remove(const void* handle) {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::unique_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <typename Predicate>
  void remove_if(Predicate gone) {
    std::erase_if(objects_, [&](const auto& entry) { return gone(*entry.second); });
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [at, object] : objects_) visit(*object);
  }
  std::size_t size() const { return objects_.size(); }

 private:
  std::unordered_map<const void*, std::unique_ptr<T>> objects_;
};

struct Context;
struct Capture;
struct ContextPages;

// A place in a stream.
struct Place {
  struct Stream* stream = nullptr;
  std::uint64_t seq = 0;
};

// What a command does to data, once everything before it has been done.
struct Effect {
  enum class Kind : std::uint8_t {
    kData,  // run under the lock
    kWait,  // done when `other` is
    kHost,  // run by the context's callback thread, without the lock
    kPoll,  // run again and again until it says so (a wait for a value in memory)
  };
  Kind kind = Kind::kData;
  std::uint64_t seq = 0;
  std::function<bool()> run;
  Place other;
};

struct Stream {
  Context* context = nullptr;
  std::uint32_t slot = 0;
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy_default = false;
  std::uint64_t submitted = 0;       // commands given to the ring
  std::uint64_t applied = 0;         // commands whose effect on data is done
  std::deque<Effect> pending;        // those whose effect has to wait, in order
  std::uint64_t after_default = 0;   // how far it is ordered after the default stream
  std::uint64_t before_default = 0;  // how far the default stream is ordered after it
  bool destroyed = false;            // gone for the program; effects are still pending
  Capture* capture = nullptr;
  std::map<int, CUstreamAttrValue> attributes;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::uint32_t number = 0;
  std::shared_ptr<ContextPages> recorded_in;  // nullptr: never recorded
  std::uint64_t context_key = 0;
  std::uint32_t slot = 0;
  std::uint64_t seq = 0;
  Stream* stream = nullptr;    // for effects; may be gone
  Capture* capture = nullptr;  // recorded in a capture: the nodes it stands for
  std::vector<struct Node*> capture_nodes;
  std::shared_ptr<struct EventCell> cell;  // interprocess: where the last record stands
  std::uint64_t followed_key = 0;          // the record that the place above waits for
  std::uint32_t followed_slot = 0;
  std::uint64_t followed_seq = 0;
};

// 2 MiB of a context that small allocations share.
struct SmallBlock {
  std::uint64_t base = 0;
  FreeRanges free;
  std::uint64_t block = 0;                 // the server's, once exported
  std::shared_ptr<class MemoryFile> file;  // with it
};

// A context's pages of the channel; whoever waits on them keeps them. What is known to have ended
// by a promise may not stand in the server's page yet.
struct ContextPages {
  ClientPage* client = nullptr;
  const ServerPage* server = nullptr;
  ContextPages() = default;
  ContextPages(const ContextPages&) = delete;
  ContextPages& operator=(const ContextPages&) = delete;
  ~ContextPages();
  std::uint64_t done(std::uint32_t slot) const {
    return std::max(published(slot), known[slot].load(std::memory_order_relaxed));
  }
  std::uint64_t published(std::uint32_t slot) const {
    return server->done[slot].load(std::memory_order_acquire);
  }
  // Under the library's lock. `ahead`: since the server last told, and so perhaps of more streams.
  bool ahead = false;
  std::vector<std::atomic<std::uint64_t>> known =
      std::vector<std::atomic<std::uint64_t>>(kStreamSlots);
};

struct StreamSlot {
  bool used = false;
  std::uint64_t last_seq = 0;  // of the streams that had it
};

struct Context {
  std::uint64_t key = 0;
  struct DeviceView* device = nullptr;
  unsigned flags = 0;
  bool primary = false;
  unsigned usage = 1;  // cuCtxAttach and cuCtxDetach
  std::shared_ptr<ContextPages> pages;
  std::uint32_t tail = 0;
  std::vector<StreamSlot> slots;
  std::vector<Stream*> blocking;  // streams that the default stream is ordered with
  std::vector<std::uint32_t> free_events;
  std::uint32_t events = 0;
  std::vector<Stream*> graph_lanes;
  Stream* follower = nullptr;  // waits for events of other processes
  std::uint64_t queried = 0;   // the place that the last query asked about
  std::unique_ptr<Stream> legacy;
  std::map<std::thread::id, std::unique_ptr<Stream>> per_thread;
  std::vector<SmallBlock> small_blocks;
  std::uint64_t code_bytes = 0;  // of its modules
  std::map<int, std::size_t> limits;
  CUfunc_cache cache_config = 0;
  CUsharedconfig shared_config = 0;
  std::set<Context*> peers;
  std::thread callbacks;  // runs host functions, once there is one
  bool stop_callbacks = false;
};

struct DeviceView {
  int ordinal = 0;           // as this process counts
  std::uint32_t server = 0;  // as the server does
  DeviceInfo info{};
  Context* primary = nullptr;
  unsigned primary_uses = 0;
  unsigned primary_flags = 0;
  struct Pool* default_pool = nullptr;
  struct Pool* current_pool = nullptr;
  bool reaches(const DeviceView& peer) const { return has(info.peers, peer); }
  bool linked_to(const DeviceView& peer) const { return has(info.nvlink_peers, peer); }
  int attribute(int id) const { return info.attributes[static_cast<std::size_t>(id)]; }

 private:
  // Instances have numbers beyond all GPUs', and no peers.
  static bool has(std::uint64_t bits, const DeviceView& peer) {
    return peer.server < 64 && (bits >> peer.server & 1) != 0;
  }
};

}  // namespace aliquot::simdriver
