#include "broker/sigbus_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "common/unique_fd.h"

namespace aliquot::broker {
namespace {

constexpr std::size_t kPage = 4096;

// Two pages of a file that has been shortened to nothing.
struct Hole {
  Hole() : fd(memfd_create("hole", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd.get(), 2 * kPage), 0);
    base = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    base[kPage] = 'x';
    EXPECT_EQ(ftruncate(fd.get(), 0), 0);
  }
  ~Hole() { munmap(base, 2 * kPage); }
  UniqueFd fd;
  volatile char* at(std::size_t offset) const { return base + offset; }
  char* base;
};

TEST(SigbusGuard, AnAccessToAHoleReadsZeroAndIsRemembered) {
  const Hole hole;
  const auto guard = SigbusGuard::watch(hole.base, 2 * kPage);
  ASSERT_TRUE(guard);
  EXPECT_FALSE(guard->tripped());
  EXPECT_EQ(*hole.at(kPage), 0);
  EXPECT_TRUE(guard->tripped());
  *hole.at(kPage + 1) = 'y';
  EXPECT_EQ(*hole.at(kPage + 1), 'y');
}

void touch_an_unwatched_hole() {
  const Hole watched, other;
  const auto guard = SigbusGuard::watch(watched.base, 2 * kPage);
  static_cast<void>(*other.at(0));
}

TEST(SigbusGuard, ElsewhereTheSignalDoesWhatItDid) {
  EXPECT_EXIT(touch_an_unwatched_hole(), testing::KilledBySignal(SIGBUS), "");
}

TEST(SigbusGuard, MovingItMovesTheWatch) {
  const Hole hole;
  SigbusGuard kept;
  {
    auto guard = SigbusGuard::watch(hole.base, 2 * kPage);
    kept = std::move(*guard);
  }
  EXPECT_EQ(*hole.at(0), 0);
  EXPECT_TRUE(kept.tripped());
}

}  // namespace
}  // namespace aliquot::broker
