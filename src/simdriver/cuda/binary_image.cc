#include "simdriver/cuda/binary_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simdriver/cuda/lz4.h"
#include "simdriver/cuda/ptx.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint32_t kFatMagic = 0xBA55ED50;
constexpr std::uint32_t kWrapperMagic = 0x466243B1;
constexpr std::size_t kLargestImage = std::size_t{1} << 31;

struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t payload_bytes;
};
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* file;
};
// One image in a fat binary (layout observed; the fields not named are of no interest).
struct FatEntry {
  std::uint16_t kind;
  std::uint16_t unknown0;
  std::uint32_t header_bytes;
  std::uint64_t stored_bytes;
  std::uint32_t compressed_bytes;
  std::uint32_t unknown1;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t target;
  std::uint64_t unknown2;
  std::uint64_t flags;
  std::uint64_t unknown3;
  std::uint64_t full_bytes;
};
static_assert(sizeof(FatEntry) == 64);
enum : std::uint16_t { kFatPtx = 1, kFatCubin = 2 };
constexpr std::uint64_t kFatLz4 = 0x2000;

// False where the bytes end.
template <typename T>
bool get(std::string_view bytes, std::size_t at, T& value) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return true;
}

std::string_view part(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return {};
  return bytes.substr(at, size);
}

std::string text_at(std::string_view table, std::uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return std::string(rest.substr(0, rest.find('\0')));
}

class Cubin {
 public:
  explicit Cubin(std::string_view bytes) : bytes_(bytes) {}

  Result<CodeImage> read() {
    Elf64_Ehdr header;
    if (!get(bytes_, 0, header) || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shnum > 65000) {
      return Error{Errc::kInvalid, "not a cubin"};
    }
    image_.code_bytes = bytes_.size();
    // The architecture stands in the lowest byte of the flags, in the second one since sm_100.
    const std::uint32_t low = header.e_flags & 0xff;
    image_.target = static_cast<int>(low >= 50 ? low : header.e_flags >> 8 & 0xff);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!get(bytes_, header.e_shoff + i * sizeof(section), section)) break;
      sections_.push_back(section);
    }
    if (header.e_shstrndx >= sections_.size()) return Error{Errc::kInvalid, "cubin without names"};
    names_ = content(sections_[header.e_shstrndx]);
    for (const Elf64_Shdr& section : sections_) visit(section);
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_SYMTAB) symbols(section);
    }
    for (auto& [name, kernel] : kernels_) image_.kernels.push_back(std::move(kernel));
    return std::move(image_);
  }

 private:
  std::string_view content(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view()
                                         : part(bytes_, section.sh_offset, section.sh_size);
  }

  void visit(const Elf64_Shdr& section) {
    const std::string name = text_at(names_, section.sh_name);
    const auto after = [&](std::string_view prefix) { return name.substr(prefix.size()); };
    if (name.starts_with(".text.")) {
      KernelImage& kernel = kernels_[after(".text.")];
      kernel.name = after(".text.");
      // The number of registers: the highest byte of the section's info.
      kernel.registers = section.sh_info >> 24;
    } else if (name.starts_with(".nv.shared.")) {
      kernels_[after(".nv.shared.")].shared_bytes = static_cast<std::uint32_t>(section.sh_size);
    } else if (name.starts_with(".nv.info.")) {
      information(kernels_[after(".nv.info.")], content(section));
    } else if (name == ".nv.constant3") {
      image_.constant_bytes = static_cast<std::uint32_t>(section.sh_size);
    }
  }

  // A list of attributes: format byte, attribute byte, then a value or a length and that many.
  void information(KernelImage& kernel, std::string_view list) {
    constexpr std::uint8_t kSized = 4;
    constexpr std::uint8_t kParameter = 0x17;
    constexpr std::uint8_t kMaxThreads = 0x05;
    constexpr std::uint8_t kFrame = 0x11;
    for (std::size_t at = 0; at + 4 <= list.size();) {
      const auto format = static_cast<std::uint8_t>(list[at]);
      const auto attribute = static_cast<std::uint8_t>(list[at + 1]);
      std::uint16_t size = 0;
      get(list, at + 2, size);
      at += 4;
      if (format != kSized) continue;
      const std::string_view value = part(list, at, size);
      at += size;
      std::uint32_t words[3] = {};
      for (std::size_t i = 0; i < 3; ++i) get(value, i * 4, words[i]);
      if (attribute == kParameter) {
        // index; ordinal and offset; size in the upper bits
        parameter(kernel, words[1] & 0xffff, words[1] >> 16, words[2] >> 18);
      } else if (attribute == kMaxThreads) {
        kernel.max_threads =
            std::clamp(words[0] * std::max(words[1], 1u) * std::max(words[2], 1u), 1u, 1024u);
      } else if (attribute == kFrame) {
        kernel.local_bytes = words[1];
      }
    }
  }

  static void parameter(KernelImage& kernel, std::uint32_t ordinal, std::uint32_t offset,
                        std::uint32_t bytes) {
    if (ordinal > 4096) return;
    if (ordinal >= kernel.parameters.size()) kernel.parameters.resize(ordinal + 1);
    kernel.parameters[ordinal] = {offset, bytes};
    kernel.parameter_bytes = std::max(kernel.parameter_bytes, offset + bytes);
  }

  void symbols(const Elf64_Shdr& table) {
    if (table.sh_link >= sections_.size()) return;
    const std::string_view names = content(sections_[table.sh_link]);
    const std::string_view list = content(table);
    Elf64_Sym symbol;
    for (std::size_t at = 0; get(list, at, symbol); at += sizeof(symbol)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections_.size() ||
          symbol.st_size > (1ull << 40)) {
        continue;
      }
      const Elf64_Shdr& home = sections_[symbol.st_shndx];
      const std::string where = text_at(names_, home.sh_name);
      const bool constant = where.starts_with(".nv.constant");
      if (!where.starts_with(".nv.global") && !constant) continue;
      VariableImage variable;
      variable.name = text_at(names, symbol.st_name);
      variable.bytes = symbol.st_size;
      variable.constant = constant;
      for (const char c : part(content(home), symbol.st_value, symbol.st_size)) {
        variable.initial.push_back(static_cast<std::byte>(c));
      }
      image_.variables.push_back(std::move(variable));
    }
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::string_view names_;
  std::map<std::string, KernelImage> kernels_;
  CodeImage image_;
};

std::optional<std::string> contents(const FatEntry& entry, std::string_view stored) {
  if (entry.compressed_bytes == 0) return std::string(stored);
  if ((entry.flags & kFatLz4) == 0 || entry.full_bytes > (64u << 20)) return std::nullopt;
  return lz4_block(stored.substr(0, entry.compressed_bytes), entry.full_bytes);
}

Result<CodeImage> read_fat(std::string_view bytes) {
  FatHeader header;
  if (!get(bytes, 0, header)) return Error{Errc::kInvalid, "a fat binary without its header"};
  std::optional<CodeImage> best;
  std::string skipped;
  FatEntry entry;
  for (std::size_t at = header.header_bytes; get(bytes, at, entry);) {
    const std::string_view stored = part(bytes, at + entry.header_bytes, entry.stored_bytes);
    if (stored.empty() || entry.header_bytes < sizeof(FatEntry)) break;
    at += entry.header_bytes + entry.stored_bytes;
    const auto full = contents(entry, stored);
    if (!full) {
      skipped = "a compression that is not known";
      continue;
    }
    const std::string_view text(full->c_str());
    auto image = entry.kind == kFatPtx ? read_ptx(text) : Cubin(*full).read();
    if (!image) {
      skipped = image.error().message;
      continue;
    }
    const bool better = !best || image->ptx_version > best->ptx_version ||
                        (image->ptx_version == best->ptx_version && image->target > best->target);
    if (better) best = std::move(*image);
  }
  if (!best) return Error{Errc::kInvalid, "a fat binary without a readable image: " + skipped};
  return std::move(*best);
}

}  // namespace

bool is_binary_image(std::string_view bytes) {
  std::uint32_t magic = 0;
  return bytes.starts_with(
             "\x7f"
             "ELF") ||
         (get(bytes, 0, magic) && magic == kFatMagic);
}

Result<CodeImage> read_binary_image(std::string_view bytes) {
  std::uint32_t magic = 0;
  if (get(bytes, 0, magic) && magic == kFatMagic) return read_fat(bytes);
  return Cubin(bytes).read();
}

const void* image_data(const void* image) {
  Wrapper wrapper;
  std::memcpy(&wrapper.magic, image, sizeof(wrapper.magic));
  if (wrapper.magic != kWrapperMagic) return image;
  std::memcpy(&wrapper, image, sizeof(wrapper));
  return wrapper.data;
}

std::size_t binary_image_bytes(const void* image) {
  const void* data = image_data(image);
  std::uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof(magic));
  if (magic == kFatMagic) {
    FatHeader header;
    std::memcpy(&header, data, sizeof(header));
    return header.payload_bytes > kLargestImage ? 0 : header.header_bytes + header.payload_bytes;
  }
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  // The tables of a cubin lie behind its sections: whichever ends last.
  const std::size_t sections =
      header.e_shoff + static_cast<std::size_t>(header.e_shnum) * header.e_shentsize;
  const std::size_t segments =
      header.e_phoff + static_cast<std::size_t>(header.e_phnum) * header.e_phentsize;
  return std::min(std::max(sections, segments), kLargestImage);
}

}  // namespace aliquot::simdriver
