// Device code as tool chains hand it over: cubins, and fat binaries with compressed PTX in them.
// Both are made here, of the parts that the driver reads.
#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x1");

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string words(const std::vector<std::uint32_t>& all) {
  return {reinterpret_cast<const char*>(all.data()), all.size() * 4};
}
// An attribute of a kernel that has a size.
std::string attribute(unsigned char which, const std::vector<std::uint32_t>& value) {
  const auto size = static_cast<std::uint16_t>(value.size() * 4);
  return std::string{4, static_cast<char>(which)} + bytes_of(size) + words(value);
}

// An ELF file of sections in the order in which they were added; names and symbols come last.
class CubinText {
 public:
  explicit CubinText(std::uint32_t target) { header_.e_flags = target; }
  unsigned add(const std::string& name, unsigned type, const std::string& content,
               std::uint32_t info = 0) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_type = type;
    section.sh_offset = sizeof(header_) + body_.size();
    section.sh_size = content.size();
    section.sh_info = info;
    if (type == SHT_SYMTAB) section.sh_link = static_cast<Elf64_Word>(sections_.size() + 1);
    names_ += name + '\0';
    if (type != SHT_NOBITS) body_ += content;
    sections_.push_back(section);
    return static_cast<unsigned>(sections_.size() - 1);
  }
  void add_variable(const std::string& name, unsigned section, std::uint64_t bytes) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(symbol_names_.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = static_cast<Elf64_Section>(section);
    symbol.st_size = bytes;
    symbol_names_ += name + '\0';
    symbols_ += bytes_of(symbol);
  }
  std::string finished() {
    add(".symtab", SHT_SYMTAB, symbols_);
    add(".strtab", SHT_STRTAB, symbol_names_);
    // Its own name is among them.
    const unsigned names = add(".shstrtab", SHT_STRTAB, names_ + ".shstrtab" + '\0');
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_shoff = sizeof(header_) + body_.size();
    header_.e_shentsize = sizeof(Elf64_Shdr);
    header_.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header_.e_shstrndx = static_cast<Elf64_Half>(names);
    std::string file = bytes_of(header_) + body_;
    for (const Elf64_Shdr& section : sections_) file += bytes_of(section);
    return file;
  }

 private:
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::string body_, names_, symbols_, symbol_names_;
};

// scale(u64, u32) and an initialised variable of 8 bytes.
std::string cubin(std::uint32_t target) {
  CubinText text(target);
  text.add("", SHT_NULL, "");
  text.add(".text.scale", SHT_PROGBITS, std::string(128, '\0'), 40u << 24);
  text.add(".nv.info.scale", SHT_PROGBITS,
           attribute(0x17, {0, 1 | 8u << 16, 4u << 18}) + attribute(0x17, {0, 0, 8u << 18}) +
               attribute(0x05, {128, 2, 1}) + attribute(0x11, {0, 64}));
  text.add(".nv.shared.scale", SHT_NOBITS, std::string(2048, '\0'));
  text.add(".nv.constant3", SHT_PROGBITS, std::string(256, '\0'));
  const unsigned data = text.add(".nv.global.init", SHT_PROGBITS, words({11, 12}));
  text.add_variable("table", data, 8);
  return text.finished();
}

// LZ4's length beyond the 15 that its token holds.
std::string more_length(std::size_t length) {
  std::string bytes;
  for (length -= 15; length >= 255; length -= 255) bytes += '\xff';
  return bytes + static_cast<char>(length);
}

// One LZ4 block: `before`, its last byte `times` more, `after`; each of 15 and more.
std::string compressed(std::string_view before, std::size_t times, std::string_view after) {
  return '\xff' + more_length(before.size()) + std::string(before) + std::string("\x01\x00", 2) +
         more_length(times - 4) + '\xf0' + more_length(after.size()) + std::string(after);
}

// A fat binary that holds one PTX text, compressed.
std::string fat_binary(const std::string& stored, std::size_t full_bytes) {
  std::string entry = bytes_of(std::uint16_t{1}) + bytes_of(std::uint16_t{0x0101}) +
                      bytes_of(std::uint32_t{64}) + bytes_of(std::uint64_t{stored.size()}) +
                      bytes_of(static_cast<std::uint32_t>(stored.size())) + words({0});
  entry += bytes_of(std::uint16_t{0}) + bytes_of(std::uint16_t{8}) + words({80, 0, 0}) +
           bytes_of(std::uint64_t{0x2000}) + bytes_of(std::uint64_t{0}) +
           bytes_of(std::uint64_t{full_bytes});
  return words({0xBA55ED50}) + bytes_of(std::uint16_t{1}) + bytes_of(std::uint16_t{16}) +
         bytes_of(std::uint64_t{entry.size() + stored.size()}) + entry + stored;
}

class Images : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS); }
  static CUfunction function(CUmodule module, const char* name) {
    CUfunction found = nullptr;
    EXPECT_EQ(CU(cuModuleGetFunction)(&found, module, name), CUDA_SUCCESS);
    return found;
  }
  static int attribute_of(CUfunction kernel, CUfunction_attribute which) {
    int value = -1;
    EXPECT_EQ(CU(cuFuncGetAttribute)(&value, which, kernel), CUDA_SUCCESS);
    return value;
  }
  // Offset and size of each.
  static std::vector<std::pair<size_t, size_t>> parameters(CUfunction kernel) {
    std::vector<std::pair<size_t, size_t>> all;
    size_t offset = 0;
    size_t size = 0;
    while (CU(cuFuncGetParamInfo)(kernel, all.size(), &offset, &size) == CUDA_SUCCESS) {
      all.emplace_back(offset, size);
    }
    return all;
  }
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

using Parameters = std::vector<std::pair<size_t, size_t>>;

TEST_F(Images, ACubinTellsItsKernelsAndVariables) {
  const std::string image = cubin(80);
  ASSERT_EQ(CU(cuModuleLoadData)(&module_, image.data()), CUDA_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(CU(cuModuleGetFunctionCount)(&count, module_), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  const CUfunction scale = function(module_, "scale");
  EXPECT_EQ(parameters(scale), (Parameters{{0, 8}, {8, 4}}));
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_NUM_REGS), 40);
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 2048);
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 64);
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 256);
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
  EXPECT_EQ(attribute_of(scale, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 80);

  CUdeviceptr table = 0;
  size_t bytes = 0;
  ASSERT_EQ(CU(cuModuleGetGlobal_v2)(&table, &bytes, module_, "table"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 8u);
  std::uint32_t second = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&second, table + 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(second, 12u);

  std::uint64_t address = 0;
  std::uint32_t factor = 2;
  void* arguments[] = {&address, &factor};
  EXPECT_EQ(CU(cuLaunchKernel)(scale, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLaunchKernel)(scale, 4, 1, 1, 512, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

TEST_F(Images, ACubinOfAYoungerGpuIsRefused) {
  const std::string image = cubin(90);
  EXPECT_EQ(CU(cuModuleLoadData)(&module_, image.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_F(Images, AFatBinarysCompressedTextIsRead) {
  const std::string before = ".version 8.0\n.target sm_80\n.address_size 64\n// ";
  const std::string after = R"(
.visible .entry add_all(.param .u64 a, .param .u32 n, .param .align 8 .b8 box[24])
.maxntid 128, 1, 1
{ .shared .align 4 .b8 room[1024]; ret; }
)";
  const std::string stored = compressed(before, 1000, after);
  const std::string image = fat_binary(stored, before.size() + 1000 + after.size());
  ASSERT_LT(stored.size(), 400u);
  const auto check = [](CUmodule module) {
    const CUfunction add_all = function(module, "add_all");
    EXPECT_EQ(parameters(add_all), (Parameters{{0, 8}, {8, 4}, {16, 24}}));
    EXPECT_EQ(attribute_of(add_all, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
    EXPECT_EQ(attribute_of(add_all, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
  };
  ASSERT_EQ(CU(cuModuleLoadFatBinary)(&module_, image.data()), CUDA_SUCCESS);
  check(module_);

  // As a compiler's stubs hold it.
  struct {
    std::uint32_t magic = 0x466243B1, version = 1;
    const void* data = nullptr;
    const void* file = nullptr;
  } wrapper;
  wrapper.data = image.data();
  CUlibrary library = nullptr;
  CUmodule of_library = nullptr;
  ASSERT_EQ(CU(cuLibraryLoadData)(&library, &wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuLibraryGetModule)(&of_library, library), CUDA_SUCCESS);
  check(of_library);
  EXPECT_EQ(CU(cuLibraryUnload)(library), CUDA_SUCCESS);

  std::string damaged = image;
  damaged.resize(damaged.size() - after.size());
  damaged.append(after.size(), '\0');
  damaged[80] = '\x0f';  // another length than the text has
  EXPECT_EQ(CU(cuModuleLoadFatBinary)(&module_, damaged.data()), CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(Images, AModuleHoldsMemoryForItsVariablesUntilItIsUnloaded) {
  const char* text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 large[5242880];
.visible .entry nothing() { ret; }
)";
  const std::uint64_t before = free_bytes();
  ASSERT_EQ(CU(cuModuleLoadData)(&module_, text), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 6 * kMiB);
  CUmodule again = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&again, text), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 12 * kMiB);
  EXPECT_EQ(CU(cuModuleUnload)(module_), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 6 * kMiB);
  EXPECT_EQ(CU(cuModuleUnload)(again), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(CU(cuModuleUnload)(again), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Images, CodeThatAContextHasNoRoomForTakesGranules) {
  const auto cubin_of = [](std::size_t bytes) {
    CubinText cubin(80);
    cubin.add(".text.nothing", SHT_PROGBITS, std::string(bytes, '\0'));
    return cubin.finished();
  };
  const std::string small = cubin_of(kMiB);
  const std::string large = cubin_of(3 * kMiB);
  const std::uint64_t before = free_bytes();
  CUmodule modules[3] = {};
  ASSERT_EQ(CU(cuModuleLoadData)(&modules[0], small.data()), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 0u);
  ASSERT_EQ(CU(cuModuleLoadData)(&modules[1], large.data()), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 4 * kMiB);  // a little over 4 MiB in all, less 2
  const std::uint64_t all = free_bytes() / (2 * kMiB) * (2 * kMiB);
  CUdeviceptr rest = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&rest, all), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuModuleLoadData)(&modules[2], large.data()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuMemFree_v2)(rest), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuModuleUnload)(modules[0]), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 2 * kMiB);
  EXPECT_EQ(CU(cuModuleUnload)(modules[1]), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

}  // namespace
}  // namespace aliquot::simdriver::test
