// What a caller describes by pointer, read once: what is charged and what the driver reads must be
// one, whatever another thread writes meanwhile. Any thread.
#pragma once

namespace aliquot::interposer {

template <class Descriptor>
struct Copied {
  explicit Copied(const Descriptor* given) : at(given != nullptr ? &copy : nullptr) {
    if (given != nullptr) copy = *given;
  }
  Copied(const Copied&) = delete;
  Copied& operator=(const Copied&) = delete;

  Descriptor copy{};
  const Descriptor* at;  // null as the caller's was
};

}  // namespace aliquot::interposer
