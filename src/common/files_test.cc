#include "common/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/state_directory.h"

namespace aliquot {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aliquot-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(Files, ReplacesAFileWholeAndLeavesNothingBeside) {
  ASSERT_TRUE(write_file_atomically(dir_ / "f", "old"));
  ASSERT_TRUE(write_file_atomically(dir_ / "f", "new", 0600));

  EXPECT_EQ(*read_file(dir_ / "f"), "new");
  struct stat st{};
  ASSERT_EQ(stat((dir_ / "f").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(Files, SaysWhatWasTriedAndWhy) {
  const auto missing = read_file(dir_ / "none");
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().message,
            "read " + (dir_ / "none").string() + ": No such file or directory");
}

TEST_F(Files, RefusesMoreThanTheCallerExpects) {
  ASSERT_TRUE(write_file_atomically(dir_ / "f", "12345"));
  EXPECT_EQ(read_file(dir_ / "f", 4).error().code, Errc::kInvalid);
  EXPECT_TRUE(read_file(dir_ / "f", 5));
}

TEST_F(Files, MakesParentsAndKeepsWhatIsThere) {
  EXPECT_TRUE(make_directories(dir_ / "a/b", 0700));
  EXPECT_TRUE(make_directories(dir_ / "a/b", 0700));
  ASSERT_TRUE(write_file_atomically(dir_ / "file", ""));
  EXPECT_FALSE(make_directories(dir_ / "file"));
}

TEST_F(Files, StateDirectoryFollowsTheOverride) {
  ASSERT_EQ(setenv("ALIQUOT_STATE_DIR", dir_.c_str(), 1), 0);
  EXPECT_EQ(state_directory(), dir_);
  unsetenv("ALIQUOT_STATE_DIR");
}

}  // namespace
}  // namespace aliquot
