#include "simdriver/cuda/memory_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kGranule = 2u << 20;

class MemoryFileTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryFile> make(MemoryFile::Sharing sharing = MemoryFile::Sharing::kPrivate) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fd.get(), 1ll << 40), 0);
    return std::make_unique<MemoryFile>(std::move(fd), sharing, [this](std::int64_t bytes) {
      if (bytes > budget_) return false;
      budget_ -= bytes;
      return true;
    });
  }
  std::int64_t budget_ = 64 << 20;
};

std::uint64_t blocks_of(const MemoryFile& file) {
  struct stat about{};
  fstat(file.fd(), &about);
  return static_cast<std::uint64_t>(about.st_blocks) * 512;
}

TEST_F(MemoryFileTest, IsZeroWhereNothingWasWritten) {
  const auto file = make();
  std::vector<char> got(5000, 'x');
  ASSERT_TRUE(file->read(kGranule - 17, got.data(), got.size()));
  EXPECT_EQ(got, std::vector<char>(5000, 0));
  EXPECT_EQ(blocks_of(*file), 0u);
}

TEST_F(MemoryFileTest, GivesBackWhatWasWrittenAcrossGranules) {
  const auto file = make();
  const std::string text = "across the border of two granules";
  ASSERT_TRUE(file->write(kGranule - 7, text.data(), text.size()));
  std::string got(text.size(), 0);
  ASSERT_TRUE(file->read(kGranule - 7, got.data(), got.size()));
  EXPECT_EQ(got, text);
  EXPECT_EQ(budget_, (64 << 20) - 2 * static_cast<std::int64_t>(kGranule));
}

TEST_F(MemoryFileTest, RemembersAFillOfFortyGigabytesWithoutMemory) {
  const auto file = make();
  ASSERT_TRUE(file->fill(0, 40ull << 30, {0xdeadbeef, 4}));
  std::uint32_t got[2] = {};
  ASSERT_TRUE(file->read((39ull << 30) + 4, got, sizeof(got)));
  EXPECT_EQ(got[0], 0xdeadbeef);
  EXPECT_EQ(got[1], 0xdeadbeef);
  EXPECT_EQ(blocks_of(*file), 0u);
  EXPECT_EQ(budget_, 64 << 20);
}

TEST_F(MemoryFileTest, KeepsAFillAroundAWriteIntoIt) {
  const auto file = make();
  ASSERT_TRUE(file->fill(0, kGranule, {0x0201, 2}));
  ASSERT_TRUE(file->write(5, "!", 1));
  unsigned char got[8] = {};
  ASSERT_TRUE(file->read(0, got, sizeof(got)));
  const unsigned char want[8] = {1, 2, 1, 2, 1, '!', 1, 2};
  EXPECT_EQ(std::memcmp(got, want, sizeof(got)), 0);
}

TEST_F(MemoryFileTest, SaysSoWhenTheHostHasNoMoreMemory) {
  budget_ = static_cast<std::int64_t>(kGranule);
  const auto file = make();
  EXPECT_TRUE(file->write(0, "a", 1));
  EXPECT_FALSE(file->write(kGranule, "b", 1));
  file->punch(0, kGranule);
  EXPECT_TRUE(file->write(kGranule, "b", 1));
}

TEST_F(MemoryFileTest, GivesMemoryBackWhenPunchedAndWhenItEnds) {
  auto file = make();
  ASSERT_TRUE(file->write(0, "a", 1));
  ASSERT_TRUE(file->write(10 * kGranule, "b", 1));
  file->punch(0, 1ull << 40);
  EXPECT_EQ(budget_, 64 << 20);
  EXPECT_EQ(blocks_of(*file), 0u);
  ASSERT_TRUE(file->write(0, "a", 1));
  file.reset();
  EXPECT_EQ(budget_, 64 << 20);
}

TEST_F(MemoryFileTest, ShowsAFillToOthersWhenShared) {
  const auto file = make(MemoryFile::Sharing::kShared);
  ASSERT_TRUE(file->fill(0, kGranule, {0x55, 1}));
  char got = 0;
  ASSERT_EQ(pread(file->fd(), &got, 1, kGranule - 1), 1);
  EXPECT_EQ(got, 0x55);
}

// Property: whatever the sequence, the file reads as a plain array would.
TEST_F(MemoryFileTest, ReadsLikeAPlainArrayUnderRandomUse) {
  std::mt19937_64 random(4711);
  const auto file = make();
  const std::uint64_t size = 3 * kGranule;
  std::vector<unsigned char> model(size, 0);
  for (int step = 0; step < 120; ++step) {
    std::uint64_t at = random() % size / 4 * 4;
    std::uint64_t bytes = random() % 8 == 0 ? size - at : random() % std::min(size - at, 9999ul);
    if (random() % 6 == 0) at = at / kGranule * kGranule, bytes = size - at;
    if (random() % 2 == 0) {
      const auto width = 1u << random() % 3;
      bytes = bytes / width * width;
      const auto value = static_cast<std::uint32_t>(random() % 3 == 0 ? 0 : random());
      ASSERT_TRUE(file->fill(at, bytes, {value, width}));
      for (std::uint64_t i = 0; i < bytes; ++i) {
        model[at + i] = static_cast<unsigned char>(value >> 8 * ((at + i) % width));
      }
    } else {
      std::vector<unsigned char> data(bytes);
      for (auto& byte : data) byte = static_cast<unsigned char>(random());
      ASSERT_TRUE(file->write(at, data.data(), bytes));
      std::copy(data.begin(), data.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (step % 10 != 0) continue;
    std::vector<unsigned char> got(size);
    ASSERT_TRUE(file->read(0, got.data(), size));
    ASSERT_EQ(got, model) << "step " << step;
  }
}

}  // namespace
}  // namespace aliquot::simdriver
