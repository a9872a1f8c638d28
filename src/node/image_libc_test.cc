#include "node/image_libc.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "common/files.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

struct ImageLibcTest : testing::Test {
  ImageLibcTest() {
    std::string name = testing::TempDir() + "/image-XXXXXX";
    root = mkdtemp(name.data());
  }
  ~ImageLibcTest() override { fs::remove_all(root); }
  void file(const std::string& path, const std::string& text = "x") {
    fs::create_directories((root / path).parent_path());
    EXPECT_TRUE(write_file_atomically(root / path, text));
  }
  fs::path root;
};

TEST_F(ImageLibcTest, AnImageWithGlibcsLoaderCanLoadTheLibrary) {
  file("lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(libc_of(root), ImageLibc::kGlibc);
}

TEST_F(ImageLibcTest, LinksAreFollowedAsFromWithin) {
  file("usr/lib/x86_64-linux-gnu/ld-2.36.so");
  fs::create_directories(root / "usr/lib64");
  fs::create_symlink("/usr/lib/x86_64-linux-gnu/ld-2.36.so",
                     root / "usr/lib64/ld-linux-x86-64.so.2");
  fs::create_symlink("/usr/lib64", root / "lib64");
  EXPECT_EQ(libc_of(root), ImageLibc::kGlibc);
}

TEST_F(ImageLibcTest, AMuslOrStaticImageCannotEvenIfTheHostCould) {
  file("lib/ld-musl-x86_64.so.1");
  file("bin/busybox");
  // Out of the image, where a host of glibc has it.
  fs::create_directory_symlink("../../../../../../../../usr/lib64", root / "lib64");
  EXPECT_EQ(libc_of(root), ImageLibc::kOther);
}

TEST_F(ImageLibcTest, WhatIsNotThereIsNotJudged) {
  EXPECT_EQ(libc_of(root / "none"), ImageLibc::kUnknown);
}

TEST_F(ImageLibcTest, TheRootIsFoundByTheRuntimesState) {
  file("config.json", R"({"root": {"path": "rootfs"}})");
  EXPECT_EQ(root_of_state(R"({"id": "c", "bundle": ")" + root.string() + "\"}"), root / "rootfs");
  file("config.json", R"({"root": {"path": "/somewhere"}})");
  EXPECT_EQ(root_of_state(R"({"bundle": ")" + root.string() + "\"}"), "/somewhere");
  EXPECT_EQ(root_of_state("junk"), "");
  EXPECT_EQ(root_of_state(R"({"bundle": "/none"})"), "");
}

}  // namespace
}  // namespace aliquot::node
