#include "simdriver/library_versions.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "common/files.h"
#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"

namespace aliquot::simdriver {
namespace {

constexpr std::size_t kLargestLibrary = std::size_t{256} << 20;

Error broken(const std::filesystem::path& from) {
  return Error{Errc::kInvalid, "read library " + from.string() + ": not an ELF file of 64 bits"};
}

template <typename T>
bool get(const std::string& bytes, std::size_t at, T& value) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return true;
}

}  // namespace

Status copy_library(const std::filesystem::path& from, const std::filesystem::path& to,
                    const std::function<bool(std::string_view symbol)>& absent) {
  Result<std::string> bytes = read_file(from, kLargestLibrary);
  if (!bytes) return bytes.error();
  Elf64_Ehdr header;
  if (!get(*bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return broken(from);
  }
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    Elf64_Shdr names;
    if (!get(*bytes, header.e_shoff + i * sizeof(section), section)) return broken(from);
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!get(*bytes, header.e_shoff + section.sh_link * sizeof(names), names)) return broken(from);
    for (std::size_t at = section.sh_offset; at < section.sh_offset + section.sh_size;
         at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!get(*bytes, at, symbol) || names.sh_offset + symbol.st_name >= bytes->size()) {
        return broken(from);
      }
      if (symbol.st_shndx == SHN_UNDEF) continue;
      if (!absent(bytes->c_str() + names.sh_offset + symbol.st_name)) continue;
      // An undefined symbol is not found by any look-up; its place in the hash table stays.
      symbol.st_shndx = SHN_UNDEF;
      symbol.st_value = 0;
      std::memcpy(bytes->data() + at, &symbol, sizeof(symbol));
    }
  }
  return write_file_atomically(to, *bytes, 0755);
}

bool absent_in_version(std::string_view symbol, int cuda_version) {
  if (const auto row = driver_abi::cuda_row(symbol))
    return !driver_abi::entry(*row).in_version(cuda_version);
  const auto row = driver_abi::nvml_row(symbol);
  return row && !driver_abi::entry(*row).in_version(cuda_version);
}

}  // namespace aliquot::simdriver
