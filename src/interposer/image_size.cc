#include "interposer/image_size.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace aliquot::interposer {
namespace {

// The wrapper that nvcc puts around a fat binary, and the fat binary's header.
struct FatWrapper {
  std::uint32_t magic, version;
  const void* data;
};
constexpr std::uint32_t kFatWrapperMagic = 0x466243B1;
struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t payload_bytes;
};
constexpr std::uint32_t kFatMagic = 0xBA55ED50;

std::uint64_t elf_bytes(const void* image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  const std::uint64_t sections =
      header.e_shoff + std::uint64_t{header.e_shentsize} * header.e_shnum;
  const std::uint64_t segments =
      header.e_phoff + std::uint64_t{header.e_phentsize} * header.e_phnum;
  return sections > segments ? sections : segments;
}

}  // namespace

std::uint64_t image_bytes(const void* image) {
  if (image == nullptr) return 0;
  std::uint32_t magic = 0;
  memcpy(&magic, image, 1);
  if (magic == 0) return 0;
  memcpy(&magic, image, strnlen(static_cast<const char*>(image), sizeof magic));
  if (magic == kFatWrapperMagic) {
    FatWrapper wrapper;
    memcpy(&wrapper, image, sizeof wrapper);
    return wrapper.data != nullptr ? image_bytes(wrapper.data) : 0;
  }
  if (magic == kFatMagic) {
    FatHeader header;
    memcpy(&header, image, sizeof header);
    return header.header_bytes + header.payload_bytes;
  }
  if (memcmp(&magic, ELFMAG, SELFMAG) == 0) return elf_bytes(image);
  return strlen(static_cast<const char*>(image));
}

std::uint64_t file_bytes(const char* path) {
  if (path == nullptr) return 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const off_t end = lseek(fd, 0, SEEK_END);  // fstat has no old symbol version in new headers
  close(fd);
  return end > 0 ? static_cast<std::uint64_t>(end) : 0;
}

}  // namespace aliquot::interposer
