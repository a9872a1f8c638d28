// Every driver call behind every way to device memory fails once, at each of its places: charge and
// allocation roll back, outputs stay untouched, the driver's own error is returned.
//
// The table says how memory is taken and given back; which driver calls that needs is found by
// looking, so a guard that asks the driver something new is covered without a word here.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
constexpr std::uint64_t kMiB = Share::kMiB;
constexpr CUresult kInjected = CUDA_ERROR_ECC_UNCORRECTABLE;

// What a way hands out; as it was where a call has failed.
struct Made {
  unsigned long long pointer = 0x5a5a, pitch = 0x5a5a, handle = 0x5a5a;
  void* object = nullptr;
  bool operator==(const Made&) const = default;

  CUdeviceptr* address() { return &pointer; }
  template <class Handle>
  Handle* as() {
    return reinterpret_cast<Handle*>(&object);
  }
};

struct Way {
  const char* name;  // of the driver's call that takes the memory
  std::function<CUresult(Made&)> take, give;
};

// Null where a call for it fails.
CUgraph graph_of(std::uint64_t bytes) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = bytes;
  if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS ||
      cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) != CUDA_SUCCESS)
    return nullptr;
  return graph;
}

const CUmemAllocationProp kOnDevice = [] {
  CUmemAllocationProp properties{};
  properties.type = 1;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}();
const CUDA_ARRAY_DESCRIPTOR kFlat{64, 64, CU_AD_FORMAT_FLOAT, 1};
const CUDA_ARRAY3D_DESCRIPTOR kCube{64, 64, 64, CU_AD_FORMAT_FLOAT, 1, 0};
const CUDA_EXTERNAL_MEMORY_HANDLE_DESC kForeign = [] {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.bytes = 3 * kMiB;
  return description;
}();

// From a pool of its own, which goes with it.
CUresult take_from_pool(Made& made) {
  CUmemPoolProps properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUresult result = cuMemPoolCreate(&pool, &properties);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAllocFromPoolAsync(made.address(), kMiB, pool, nullptr);
  if (result == CUDA_SUCCESS)
    *made.as<CUmemoryPool>() = pool;
  else
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  return result;
}
CUresult give_to_pool(Made& made) {
  if (made.pointer != 0)
    if (const CUresult freed = cuMemFreeAsync(made.pointer, nullptr); freed != CUDA_SUCCESS)
      return freed;
  made.pointer = 0;
  return cuMemPoolDestroy(*made.as<CUmemoryPool>());
}

std::vector<Way> linear_ways() {
  const auto free = [](Made& m) { return cuMemFree_v2(m.pointer); };
  return {
      {"cuMemAlloc_v2", [](Made& m) { return cuMemAlloc_v2(m.address(), 5 * kMiB); }, free},
      {"cuMemAllocManaged", [](Made& m) { return cuMemAllocManaged(m.address(), kMiB, 1); }, free},
      {"cuMemAllocPitch_v2",
       [](Made& m) {
         return cuMemAllocPitch_v2(m.address(), reinterpret_cast<std::size_t*>(&m.pitch), 100, 50,
                                   4);
       },
       free},
      {"cuMemAllocFromPoolAsync", take_from_pool, give_to_pool},
  };
}

std::vector<Way> object_ways() {
  return {
      {"cuMemCreate", [](Made& m) { return cuMemCreate(&m.handle, 4 * kMiB, &kOnDevice, 0); },
       [](Made& m) { return cuMemRelease(m.handle); }},
      {"cuArrayCreate_v2", [](Made& m) { return cuArrayCreate_v2(m.as<CUarray>(), &kFlat); },
       [](Made& m) { return cuArrayDestroy(*m.as<CUarray>()); }},
      {"cuArray3DCreate_v2", [](Made& m) { return cuArray3DCreate_v2(m.as<CUarray>(), &kCube); },
       [](Made& m) { return cuArrayDestroy(*m.as<CUarray>()); }},
      {"cuMipmappedArrayCreate",
       [](Made& m) { return cuMipmappedArrayCreate(m.as<CUmipmappedArray>(), &kCube, 3); },
       [](Made& m) { return cuMipmappedArrayDestroy(*m.as<CUmipmappedArray>()); }},
      {"cuImportExternalMemory",
       [](Made& m) { return cuImportExternalMemory(m.as<CUexternalMemory>(), &kForeign); },
       [](Made& m) { return cuDestroyExternalMemory(*m.as<CUexternalMemory>()); }},
      {"cuModuleLoadData", [](Made& m) { return cuModuleLoadData(m.as<CUmodule>(), "ptx"); },
       [](Made& m) { return cuModuleUnload(*m.as<CUmodule>()); }},
      {"cuLibraryLoadData",
       [](Made& m) {
         return cuLibraryLoadData(m.as<CUlibrary>(), "ptx", nullptr, nullptr, 0, nullptr, nullptr,
                                  0);
       },
       [](Made& m) { return cuLibraryUnload(*m.as<CUlibrary>()); }},
      {"cuGraphInstantiateWithFlags",
       [](Made& m) {
         CUgraph graph = graph_of(4 * kMiB);
         return graph == nullptr ? kInjected
                                 : cuGraphInstantiateWithFlags(m.as<CUgraphExec>(), graph, 0);
       },
       [](Made& m) { return cuGraphExecDestroy(*m.as<CUgraphExec>()); }},
      {"cuCtxCreate_v2", [](Made& m) { return cuCtxCreate_v2(m.as<CUcontext>(), 0, 0); },
       [](Made& m) { return cuCtxDestroy_v2(*m.as<CUcontext>()); }},
      {"cuDevicePrimaryCtxRetain",
       [](Made& m) { return cuDevicePrimaryCtxRetain(m.as<CUcontext>(), 0); },
       [](Made&) { return cuDevicePrimaryCtxRelease_v2(0); }},
  };
}

std::vector<Way> ways() {
  std::vector<Way> all = linear_ways();
  for (Way& way : object_ways()) all.push_back(std::move(way));
  return all;
}

// A share with a context of 10 MiB in it.
class Failing {
 public:
  Failing() : share_(256 * kMiB) {
    share_.lease.grant.gpu[0].context_overhead_bytes = 10 * kMiB;
    EXPECT_NE(share_.begin(), nullptr);
    used_ = share_.used();
  }

  // How often each driver call was made by `act`.
  std::map<std::string, std::uint64_t> calls_of(const std::function<void()>& act) {
    const auto before = share_.fake.calls;
    act();
    std::map<std::string, std::uint64_t> made;
    for (const auto& [name, count] : share_.fake.calls) {
      const auto known = before.find(name);
      const std::uint64_t more = count - (known == before.end() ? 0 : known->second);
      if (more != 0) made[name] = more;
    }
    return made;
  }
  void fail(const std::string& name, std::uint64_t after) {
    share_.fake.fail[name] = kInjected;
    share_.fake.let_through[name] = after;
  }
  void stop_failing() { share_.fake.fail.clear(); }
  void expect_nothing_taken(const std::string& when) const {
    EXPECT_EQ(share_.used(), used_) << when;
    EXPECT_EQ(share_.fake.taken_bytes(), 0u) << when;
  }
  // What the driver has taken is charged: never less.
  void expect_all_charged(const std::string& when) const {
    EXPECT_GE(share_.used() - context_bytes(), share_.fake.taken_bytes()) << when;
  }

 private:
  std::uint64_t context_bytes() const { return share_.kind(wire::Kind::kContext); }

  Share share_;
  std::uint64_t used_ = 0;
};

enum class Phase { kTake, kGive };

std::map<std::string, std::uint64_t> calls_of(const Way& way, Phase phase) {
  Failing world;
  Made made;
  std::map<std::string, std::uint64_t> calls;
  calls = world.calls_of([&] { EXPECT_EQ(way.take(made), CUDA_SUCCESS) << way.name; });
  world.expect_all_charged(way.name);
  const auto freeing = world.calls_of([&] { EXPECT_EQ(way.give(made), CUDA_SUCCESS) << way.name; });
  world.expect_nothing_taken(way.name);
  return phase == Phase::kTake ? calls : freeing;
}

class EveryDriverCall : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Guards, EveryDriverCall, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return std::string(way.param.name); });

TEST_P(EveryDriverCall, ThatFailsWhileMemoryIsTakenLeavesNothingBehind) {
  const Way& way = GetParam();
  const auto calls = calls_of(way, Phase::kTake);
  ASSERT_TRUE(calls.contains(way.name));  // or the table names the wrong call
  for (const auto& [call, count] : calls)
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string when =
          std::string(way.name) + ", " + call + " fails after " + std::to_string(i);
      Failing world;
      Made made;
      world.fail(call, i);
      const CUresult result = way.take(made);
      world.stop_failing();
      if (call == way.name && i + 1 == count) {
        EXPECT_EQ(result, kInjected) << when;
      }
      if (result != CUDA_SUCCESS) {
        // Where the driver does not say what a pool has grown by, that is no room.
        const bool unsaid = call == "cuMemPoolGetAttribute";
        EXPECT_EQ(result, unsaid ? CUDA_ERROR_OUT_OF_MEMORY : kInjected) << when;
        EXPECT_EQ(made, Made{}) << when;
        world.expect_nothing_taken(when);
        ASSERT_EQ(way.take(made), CUDA_SUCCESS) << when;
      }
      world.expect_all_charged(when);
      EXPECT_EQ(way.give(made), CUDA_SUCCESS) << when;
      world.expect_nothing_taken(when + ", and is given back");
    }
}

TEST_P(EveryDriverCall, ThatFailsWhileMemoryIsGivenBackKeepsItCharged) {
  const Way& way = GetParam();
  for (const auto& [call, count] : calls_of(way, Phase::kGive))
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string when =
          std::string(way.name) + " given back, " + call + " fails after " + std::to_string(i);
      Failing world;
      Made made;
      ASSERT_EQ(way.take(made), CUDA_SUCCESS) << when;
      world.fail(call, i);
      const CUresult result = way.give(made);
      world.stop_failing();
      world.expect_all_charged(when);
      if (result != CUDA_SUCCESS) {
        EXPECT_EQ(result, kInjected) << when;
        static_cast<void>(way.give(made));  // where a part of it was given back, the rest
      }
      world.expect_all_charged(when + ", and again");
    }
}

}  // namespace
}  // namespace aliquot::interposer
