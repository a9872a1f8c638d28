#include "simdriver/server/exports.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace aliquot::simdriver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool is_readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

TEST(Exports, KnowsWhatADescriptorAndEachCopyStandFor) {
  Exports exports;
  const UniqueFd first = exports.add(7);
  const UniqueFd second = exports.add(8);
  const UniqueFd copy(dup(first.get()));
  EXPECT_EQ(exports.block_of(first.get()), 7u);
  EXPECT_EQ(exports.block_of(copy.get()), 7u);
  EXPECT_EQ(exports.block_of(second.get()), 8u);
}

TEST(Exports, KnowsNoDescriptorOfAnotherKind) {
  Exports exports;
  const UniqueFd exported = exports.add(7);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  EXPECT_FALSE(exports.block_of(ends[1]));
  EXPECT_FALSE(exports.block_of(exports.fd()));
  EXPECT_FALSE(exports.block_of(-1));
  close(ends[0]);
  close(ends[1]);
}

TEST(Exports, TellsOnceThatTheLastCopyIsClosed) {
  Exports exports;
  UniqueFd exported = exports.add(7);
  UniqueFd copy(dup(exported.get()));
  exported.reset();
  EXPECT_FALSE(is_readable(exports.fd()));
  EXPECT_THAT(exports.take_closed(), IsEmpty());
  copy.reset();
  EXPECT_TRUE(is_readable(exports.fd()));
  EXPECT_THAT(exports.take_closed(), ElementsAre(7));
  EXPECT_THAT(exports.take_closed(), IsEmpty());
  EXPECT_FALSE(is_readable(exports.fd()));
  EXPECT_EQ(exports.size(), 0u);
}

TEST(Exports, WhatIsWrittenIntoOneWakesNobody) {
  Exports exports;
  const UniqueFd exported = exports.add(7);
  ASSERT_EQ(write(exported.get(), "x", 1), 1);
  EXPECT_FALSE(is_readable(exports.fd()));
  EXPECT_THAT(exports.take_closed(), IsEmpty());
}

}  // namespace
}  // namespace aliquot::simdriver
