// Steps that take memory, give it back, and ask about it.
#include <unistd.h>

#include <algorithm>

#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

std::string call(const char* name, std::uint64_t a) {
  return std::string(name) + "(" + std::to_string(a) + ")";
}
std::string call(const char* name, std::uint64_t a, std::uint64_t b) {
  return std::string(name) + "(" + std::to_string(a) + ", " + std::to_string(b) + ")";
}

}  // namespace

void Program::step_linear() {
  const Bytes bytes = some_bytes();
  Id id = -1;
  CUdeviceptr address = 0;
  if (one_in(4)) {  // pitched
    const Bytes width = 1 + up_to(5000);
    const Bytes height = up_to(300);
    size_t pitch = 0;
    const Bytes row = round_up(width, 512);
    const CUresult expected =
        height == 0 ? CUDA_ERROR_INVALID_VALUE : model_.linear(current(), row * height, id);
    expect(call("cuMemAllocPitch", width, height), expected,
           CU(cuMemAllocPitch_v2)(&address, &pitch, width, height, 4));
    if (expected == CUDA_SUCCESS) expect_number("the pitch", row, pitch);
  } else {
    const CUresult expected = model_.linear(current(), bytes, id);
    expect(call("cuMemAlloc", bytes), expected, CU(cuMemAlloc_v2)(&address, bytes));
  }
  if (id < 0) return;
  expect_number("the address modulo 512", 0, address % 512);
  addresses_[id] = address;
}

void Program::step_managed() {
  // More would only be backed by the host.
  const Bytes bytes = std::min<Bytes>(some_bytes(), plan_.total_bytes);
  Id id = -1;
  CUdeviceptr address = 0;
  expect(call("cuMemAllocManaged", bytes), model_.managed(current(), bytes, id),
         CU(cuMemAllocManaged)(&address, bytes, CU_MEM_ATTACH_GLOBAL));
  if (id >= 0) addresses_[id] = address;
}

void Program::step_from_pool() {
  const std::vector<Id> pools = model_.live_pools();
  const Id pool = pools[up_to(pools.size() - 1)];
  const Bytes bytes = some_bytes();
  Id id = -1;
  CUdeviceptr address = 0;
  const CUresult expected = model_.from_pool(pool, bytes, id);
  expect(call("cuMemAllocFromPoolAsync", bytes), expected,
         CU(cuMemAllocFromPoolAsync)(&address, bytes, pools_.at(pool), nullptr));
  if (id >= 0) addresses_[id] = address;
}

// cuMemFree or cuMemFreeAsync in the default stream, and waits for it.
void Program::free_now(Id id) {
  const CUdeviceptr address = address_of(id);
  if (model_.memory(id).kind == Kind::kPool && one_in(2)) {
    expect("cuMemFreeAsync", CUDA_SUCCESS, CU(cuMemFreeAsync)(address, nullptr));
    expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(nullptr));
  } else {
    expect("cuMemFree", CUDA_SUCCESS, CU(cuMemFree_v2)(address));
  }
  model_.release(id);
  addresses_.erase(id);
  stale_.push_back(address);
}

void Program::step_free() {
  const std::vector<Id> all = mine({Kind::kLinear, Kind::kManaged, Kind::kPool});
  if (!all.empty()) free_now(all[up_to(all.size() - 1)]);
}

void Program::step_wrong_free() {
  const std::vector<Id> all = mine({Kind::kLinear, Kind::kPool});
  const CUdeviceptr nowhere = 0x7000;
  expect("cuMemFree(wrong)", CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(nowhere));
  expect("cuMemFree(0)", CUDA_SUCCESS, CU(cuMemFree_v2)(0));
  if (all.empty()) return;
  const Id id = all[up_to(all.size() - 1)];
  if (model_.memory(id).bytes > 1) {
    expect("cuMemFree(inside)", CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(address_of(id) + 1));
  }
  if (model_.memory(id).kind == Kind::kLinear) {
    expect("cuMemFreeAsync(linear)", CUDA_ERROR_INVALID_VALUE,
           CU(cuMemFreeAsync)(address_of(id), nullptr));
  }
}

void Program::step_pool() {
  std::vector<Id> pools = model_.live_pools();
  const Id id = pools[up_to(pools.size() - 1)];
  const CUmemoryPool handle = pools_.at(id);
  switch (up_to(3)) {
    case 0: {
      const auto gpu = static_cast<unsigned>(up_to(plan_.gpus - 1));
      CUmemPoolProps properties{};
      properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(gpu)};
      CUmemoryPool made = nullptr;
      expect("cuMemPoolCreate", CUDA_SUCCESS, CU(cuMemPoolCreate)(&made, &properties));
      pools_[model_.make_pool(gpu, false)] = made;
      return;
    }
    case 1: {
      const bool is_default = model_.pool(id).is_default;
      expect("cuMemPoolDestroy", is_default ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS,
             CU(cuMemPoolDestroy)(handle));
      if (is_default) return;
      model_.destroy_pool(id);
      pools_.erase(id);
      expect("cuMemPoolTrimTo(destroyed)", CUDA_ERROR_INVALID_VALUE,
             CU(cuMemPoolTrimTo)(handle, 0));
      return;
    }
    case 2: {
      const Bytes keep = one_in(2) ? 0 : up_to(128u << 20);
      expect(call("cuMemPoolTrimTo", keep), CUDA_SUCCESS, CU(cuMemPoolTrimTo)(handle, keep));
      return model_.trim(id, keep);
    }
    default: {
      std::uint64_t threshold = one_in(2) ? UINT64_MAX : up_to(128u << 20);
      expect(call("release threshold", threshold), CUDA_SUCCESS,
             CU(cuMemPoolSetAttribute)(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
      model_.pool(id).threshold = threshold;
    }
  }
}

void Program::step_read_pool() {
  const std::vector<Id> pools = model_.live_pools();
  const Id id = pools[up_to(pools.size() - 1)];
  Pool& pool = model_.pool(id);
  const auto read = [&](CUmemPool_attribute attribute) {
    std::uint64_t value = 0;
    expect("cuMemPoolGetAttribute", CUDA_SUCCESS,
           CU(cuMemPoolGetAttribute)(pools_.at(id), attribute, &value));
    return value;
  };
  expect_number("used", pool.used, read(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  expect_number("used at most", pool.used_high, read(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  expect_number("reserved", pool.reserved, read(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  expect_number("reserved at most", pool.reserved_high, read(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  expect_number("threshold", pool.threshold, read(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  if (!one_in(3)) return;
  std::uint64_t zero = 0;
  expect("reset the most used", CUDA_SUCCESS,
         CU(cuMemPoolSetAttribute)(pools_.at(id), CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  pool.used_high = pool.used;
}

// Physical memory: made, mapped, unmapped, released in any order; it is free when the last
// reference is gone.
void Program::step_physical() {
  if (!mappings_.empty() && one_in(3)) return unmap();
  if (!physical_.empty() && one_in(3)) {
    const auto which =
        std::next(physical_.begin(), static_cast<std::ptrdiff_t>(up_to(physical_.size() - 1)));
    expect("cuMemRelease", CUDA_SUCCESS, CU(cuMemRelease)(which->second));
    model_.release(which->first);
    physical_.erase(which);
    return;
  }
  if (!physical_.empty() && one_in(4)) return pass_by_descriptor();
  if (!physical_.empty() && one_in(2)) return map();
  const auto gpu = static_cast<unsigned>(up_to(plan_.gpus - 1));
  const Bytes bytes = one_in(4) ? some_bytes() : kGranule * (1 + up_to(20));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(gpu)};
  if (one_in(2)) properties.requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle{};
  Id id = -1;
  expect(call("cuMemCreate", bytes), model_.physical(gpu, bytes, id),
         CU(cuMemCreate)(&handle, bytes, &properties, 0));
  if (id < 0) return;
  physical_[id] = handle;
  if (properties.requested_handle_types != 0) exportable_.insert(id);
}

// Out of the process and in again; in between the descriptor alone may keep the memory.
void Program::pass_by_descriptor() {
  const auto which =
      std::next(physical_.begin(), static_cast<std::ptrdiff_t>(up_to(physical_.size() - 1)));
  auto& [id, handle] = *which;
  const bool may = exportable_.contains(id);
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int fd = -1;
  expect("cuMemExportToShareableHandle", may ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
         CU(cuMemExportToShareableHandle)(&fd, handle, kType, 0));
  if (!may) return;
  expect("cuMemRelease(exported)", CUDA_SUCCESS, CU(cuMemRelease)(handle));
  const unsigned gpu = model_.memory(id).gpu;
  expect_number("free, while a descriptor keeps the memory", model_.free_bytes(gpu),
                simdriver::test::free_bytes(gpu));
  expect("cuMemImportFromShareableHandle", CUDA_SUCCESS,
         CU(cuMemImportFromShareableHandle)(&handle, simdriver::test::as_os_handle(fd), kType));
  close(fd);
}

void Program::map() {
  const auto& [id, handle] = *physical_.begin();
  const Bytes bytes = model_.memory(id).bytes;
  CUdeviceptr address = 0;
  expect(call("cuMemAddressReserve", bytes), CUDA_SUCCESS,
         CU(cuMemAddressReserve)(&address, bytes, 0, 0, 0));
  expect("cuMemMap(past the end)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMemMap)(address, bytes, kGranule, handle, 0));
  expect("cuMemMap", CUDA_SUCCESS, CU(cuMemMap)(address, bytes, 0, handle, 0));
  expect("cuMemsetD8(no access)", CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8_v2)(address, 1, 1));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(model_.memory(id).gpu)};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  expect("cuMemSetAccess", CUDA_SUCCESS, CU(cuMemSetAccess)(address, bytes, &access, 1));
  ++model_.memory(id).references;
  mappings_.push_back({address, id});
  addresses_[id] = address;
}

void Program::unmap() {
  const Mapping mapping = any(mappings_);
  const Bytes bytes = model_.memory(mapping.physical).bytes;
  expect("cuMemAddressFree(mapped)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMemAddressFree)(mapping.address, bytes));
  expect("cuMemUnmap", CUDA_SUCCESS, CU(cuMemUnmap)(mapping.address, bytes));
  expect("cuMemUnmap(again)", CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(mapping.address, bytes));
  expect("cuMemAddressFree", CUDA_SUCCESS, CU(cuMemAddressFree)(mapping.address, bytes));
  std::erase_if(mappings_, [&](const Mapping& it) { return it.address == mapping.address; });
  const auto another = std::ranges::find(mappings_, mapping.physical, &Mapping::physical);
  if (another == mappings_.end()) {
    addresses_.erase(mapping.physical);
  } else {
    addresses_[mapping.physical] = another->address;
  }
  model_.release(mapping.physical);
}

void Program::step_array() {
  if (!arrays_.empty() && one_in(2)) {
    const auto [id, handle] = *arrays_.begin();
    expect("cuArrayDestroy", CUDA_SUCCESS, CU(cuArrayDestroy)(handle));
    expect("cuArrayDestroy(again)", CUDA_ERROR_INVALID_HANDLE, CU(cuArrayDestroy)(handle));
    model_.release(id);
    arrays_.erase(id);
    return;
  }
  CUDA_ARRAY_DESCRIPTOR shape{};
  shape.width = up_to(4096);
  shape.height = up_to(4096);
  shape.format = CU_AD_FORMAT_FLOAT;
  shape.channels = static_cast<unsigned>(up_to(4));
  const bool valid =
      shape.width > 0 && (shape.channels == 1 || shape.channels == 2 || shape.channels == 4);
  CUarray handle = nullptr;
  Id id = -1;
  const Bytes bytes = shape.width * std::max<Bytes>(shape.height, 1) * 4 * shape.channels;
  expect(call("cuArrayCreate", shape.width, shape.height),
         valid ? model_.array(current(), bytes, id) : CUDA_ERROR_INVALID_VALUE,
         CU(cuArrayCreate_v2)(&handle, &shape));
  if (id < 0) return;
  arrays_[id] = handle;
  CUDA_ARRAY_DESCRIPTOR told{};
  expect("cuArrayGetDescriptor", CUDA_SUCCESS, CU(cuArrayGetDescriptor_v2)(&told, handle));
  expect_number("the array's width", shape.width, told.width);
  expect_number("the array's height", shape.height, told.height);
}

// Each level half of the one before, down to one element: one memory for all of them.
void Program::step_mipmap() {
  if (!mipmaps_.empty() && one_in(2)) {
    const auto [id, handle] = *mipmaps_.begin();
    expect("cuMipmappedArrayDestroy", CUDA_SUCCESS, CU(cuMipmappedArrayDestroy)(handle));
    expect("cuMipmappedArrayDestroy(again)", CUDA_ERROR_INVALID_HANDLE,
           CU(cuMipmappedArrayDestroy)(handle));
    model_.release(id);
    mipmaps_.erase(id);
    return;
  }
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.width = up_to(2048);
  shape.height = 1 + up_to(2047);
  shape.format = CU_AD_FORMAT_FLOAT;
  shape.channels = 1;
  const auto asked = static_cast<unsigned>(up_to(14));
  unsigned levels = 0;
  Bytes bytes = 0;
  const auto half = [](Bytes size, unsigned level) { return std::max<Bytes>(size >> level, 1); };
  for (; levels < asked && std::max(shape.width, shape.height) >> levels != 0; ++levels) {
    bytes += half(shape.width, levels) * half(shape.height, levels) * 4;
  }
  const bool valid = shape.width > 0 && asked > 0;
  CUmipmappedArray handle = nullptr;
  Id id = -1;
  expect(call("cuMipmappedArrayCreate", shape.width, shape.height),
         valid ? model_.array(current(), bytes, id) : CUDA_ERROR_INVALID_VALUE,
         CU(cuMipmappedArrayCreate)(&handle, &shape, asked));
  if (id < 0) return;
  mipmaps_[id] = handle;
  CUarray level = nullptr;
  CUDA_ARRAY_DESCRIPTOR told{};
  expect("cuMipmappedArrayGetLevel(one too many)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMipmappedArrayGetLevel)(&level, handle, levels));
  expect("cuMipmappedArrayGetLevel", CUDA_SUCCESS,
         CU(cuMipmappedArrayGetLevel)(&level, handle, levels - 1));
  expect("cuArrayGetDescriptor", CUDA_SUCCESS, CU(cuArrayGetDescriptor_v2)(&told, level));
  expect_number("the last level's width", half(shape.width, levels - 1), told.width);
  expect_number("the last level's height", half(shape.height, levels - 1), told.height);
  expect("cuArrayDestroy(level)", CUDA_ERROR_ARRAY_IS_MAPPED, CU(cuArrayDestroy)(level));
}

void Program::step_host() {
  const std::vector<Id> all = mine({Kind::kHost});
  if (!all.empty() && one_in(2)) {
    const Id id = all[up_to(all.size() - 1)];
    auto* at = reinterpret_cast<void*>(address_of(id));
    expect("cuMemFreeHost", CUDA_SUCCESS, CU(cuMemFreeHost)(at));
    expect("cuMemFreeHost(again)", CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeHost)(at));
    model_.release(id);
    addresses_.erase(id);
    return;
  }
  const Bytes bytes = up_to(100'000);
  void* at = nullptr;
  expect(call("cuMemHostAlloc", bytes), bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS,
         CU(cuMemHostAlloc)(&at, bytes, 0));
  if (bytes != 0) {
    addresses_[model_.host(current(), bytes)] = reinterpret_cast<CUdeviceptr>(at);
  }
}

void Program::step_range() {
  const std::vector<Id> all = mine({Kind::kLinear, Kind::kManaged, Kind::kPool});
  if (all.empty()) return;
  const Id id = all[up_to(all.size() - 1)];
  const Memory& memory = model_.memory(id);
  const CUdeviceptr inside = address_of(id) + up_to(memory.bytes - 1);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  expect("cuMemGetAddressRange", CUDA_SUCCESS, CU(cuMemGetAddressRange_v2)(&base, &bytes, inside));
  expect_number("the range's start", address_of(id), base);
  expect_number("the range's size", memory.bytes, bytes);
  unsigned managed = 2;
  expect("IS_MANAGED", CUDA_SUCCESS,
         CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
  expect_number("is managed", memory.kind == Kind::kManaged ? 1 : 0, managed);
  int ordinal = -1;
  expect("DEVICE_ORDINAL", CUDA_SUCCESS,
         CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
  expect_number("the ordinal", memory.gpu, static_cast<std::uint64_t>(ordinal));
}

// Another context becomes current, is made, or goes with all that is in it.
void Program::step_context() {
  const std::size_t primaries = plan_.gpus;
  if (contexts_.size() > primaries && one_in(2)) {
    const OpenContext gone = contexts_.back();
    contexts_.pop_back();
    if (current_ == contexts_.size()) current_ = 0;
    expect("cuCtxDestroy", CUDA_SUCCESS, CU(cuCtxDestroy_v2)(gone.handle));
    model_.close_context(gone.id);
    const std::vector<Id> left = model_.all_of({Kind::kArray});
    const auto is_gone = [&](const auto& it) {
      return std::ranges::find(left, it.first) == left.end();
    };
    std::erase_if(arrays_, is_gone);
    std::erase_if(mipmaps_, is_gone);
  } else if (contexts_.size() < primaries + 2 && one_in(2)) {
    OpenContext made;
    made.primary = false;
    const auto gpu = static_cast<unsigned>(up_to(plan_.gpus - 1));
    const CUresult expected = model_.open_context(gpu, made.id);
    expect("cuCtxCreate", expected,
           CU(cuCtxCreate_v2)(&made.handle, 0, static_cast<CUdevice>(gpu)));
    if (expected == CUDA_SUCCESS) contexts_.push_back(made);
  } else {
    current_ = up_to(contexts_.size() - 1);
  }
  expect("cuCtxSetCurrent", CUDA_SUCCESS, CU(cuCtxSetCurrent)(contexts_[current_].handle));
}

}  // namespace aliquot::reference
