#include "interposer/elf_lookup.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "interposer/old_glibc.h"

namespace aliquot::interposer {
namespace {

// What a dynamic section says, as pointers.
struct DynamicTables {
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const Elf64_Half* versions = nullptr;
  const char* soname = nullptr;
};

// Where an object's file says "at this offset", in memory.
const void* pointer_to(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

DynamicTables read_dynamic(const Elf64_Dyn* dynamic, std::uintptr_t base) {
  DynamicTables tables;
  // glibc writes absolute addresses back into the section, other loaders (and the vdso) leave
  // offsets: an address below the base must be an offset.
  const auto pointer = [base](Elf64_Addr value) {
    return pointer_to(value < base ? value + base : value);
  };
  std::uint64_t soname = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const Elf64_Addr value = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) tables.symbols = static_cast<const Elf64_Sym*>(pointer(value));
    if (dynamic->d_tag == DT_STRTAB) tables.strings = static_cast<const char*>(pointer(value));
    if (dynamic->d_tag == DT_GNU_HASH)
      tables.gnu_hash = static_cast<const std::uint32_t*>(pointer(value));
    if (dynamic->d_tag == DT_VERSYM)
      tables.versions = static_cast<const Elf64_Half*>(pointer(value));
    if (dynamic->d_tag == DT_SONAME) soname = value;
  }
  if (tables.strings != nullptr && soname != 0) tables.soname = tables.strings + soname;
  return tables;
}

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// DT_GNU_HASH: {buckets, first hashed symbol, bloom words, shift}, bloom[], bucket[], chain[]. A
// chain holds the hash of each symbol with the lowest bit saying "last one".
const Elf64_Sym* find(const DynamicTables& tables, const char* name) {
  if (tables.gnu_hash == nullptr || tables.symbols == nullptr) return nullptr;
  const std::uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1];
  const std::uint32_t* bucket =
      tables.gnu_hash + 4 + std::size_t{2} * tables.gnu_hash[2];  // 64-bit bloom words
  const std::uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  const std::uint32_t hash = gnu_hash(name);
  constexpr Elf64_Half kHiddenVersion = 0x8000;
  const Elf64_Sym* older = nullptr;
  for (std::uint32_t i = bucket[hash % buckets]; i >= first; ++i) {
    const std::uint32_t link = chain[i - first];
    const Elf64_Sym& symbol = tables.symbols[i];
    if ((link | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        std::strcmp(tables.strings + symbol.st_name, name) == 0) {
      if (tables.versions == nullptr || (tables.versions[i] & kHiddenVersion) == 0) return &symbol;
      older = &symbol;
    }
    if ((link & 1) != 0) break;
  }
  return older;
}

struct Query {
  const char* soname;
  const char* name;
  void* found;
};

int visit(dl_phdr_info* object, std::size_t, void* argument) {
  auto& query = *static_cast<Query*>(argument);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const Elf64_Phdr& header = object->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const DynamicTables tables =
        read_dynamic(static_cast<const Elf64_Dyn*>(pointer_to(object->dlpi_addr + header.p_vaddr)),
                     object->dlpi_addr);
    if (tables.soname == nullptr || std::strcmp(tables.soname, query.soname) != 0) continue;
    if (const Elf64_Sym* symbol = find(tables, query.name)) {
      query.found = const_cast<void*>(pointer_to(object->dlpi_addr + symbol->st_value));
      return 1;
    }
  }
  return 0;
}

}  // namespace

void* find_loaded_symbol(const char* soname, const char* name) {
  Query query{soname, name, nullptr};
  dl_iterate_phdr(visit, &query);
  return query.found;
}

bool lies_in_object(const void* address, const char* soname) {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return false;
  const auto* map = static_cast<const link_map*>(extra);
  const DynamicTables tables = read_dynamic(map->l_ld, map->l_addr);
  return tables.soname != nullptr && std::strcmp(tables.soname, soname) == 0;
}

}  // namespace aliquot::interposer
