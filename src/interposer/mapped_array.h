// MappedArray: a growing array of plain values in memory from mmap, for use inside programs whose
// allocator may be the caller. Not thread-safe: whoever owns it holds a lock.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace aliquot::interposer {

template <class T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

  // False: no memory; nothing changed.
  [[nodiscard]] bool insert(std::size_t at, const T& item) {
    if (size_ == capacity_ && !grow()) return false;
    std::memmove(items_ + at + 1, items_ + at, (size_ - at) * sizeof(T));
    items_[at] = item;
    ++size_;
    return true;
  }
  [[nodiscard]] bool append(const T& item) { return insert(size_, item); }
  T take(std::size_t at) {
    const T taken = items_[at];
    --size_;
    std::memmove(items_ + at, items_ + at + 1, (size_ - at) * sizeof(T));
    return taken;
  }
  void forget_all() {
    if (items_ != nullptr) munmap(items_, capacity_ * sizeof(T));
    items_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  bool grow() {
    const std::size_t capacity = capacity_ == 0 ? 128 : capacity_ * 2;
    void* memory = mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (items_ != nullptr) {
      std::memcpy(memory, items_, size_ * sizeof(T));
      munmap(items_, capacity_ * sizeof(T));
    }
    items_ = static_cast<T*>(memory);
    capacity_ = capacity;
    return true;
  }

  T* items_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace aliquot::interposer
