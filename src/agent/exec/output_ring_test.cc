#include "agent/exec/output_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace glovebox::agent {
namespace {

void write(OutputRing& ring, Channel channel, std::string_view text) {
  while (!text.empty()) {
    const std::span<char> room = ring.prepare(channel);
    const std::size_t n = std::min(room.size(), text.size());
    std::memcpy(room.data(), text.data(), n);
    ring.commit(n);
    text.remove_prefix(n);
  }
}

std::string read_all(const OutputRing& ring) {
  std::string all;
  for (std::uint64_t at = ring.begin(); at < ring.end();) {
    const OutputRing::Piece piece = ring.at(at);
    all += piece.channel == Channel::kStdout ? "o:" : "e:";
    all += piece.bytes;
    at += piece.bytes.size();
  }
  return all;
}

TEST(OutputRing, KeepsOrderAcrossChannels) {
  OutputRing ring(1 << 20);
  write(ring, Channel::kStdout, "one");
  write(ring, Channel::kStderr, "two");
  write(ring, Channel::kStdout, "three");
  EXPECT_EQ(read_all(ring), "o:onee:twoo:three");
  EXPECT_EQ(ring.at(4).bytes, "wo");
  EXPECT_EQ(ring.at(4).cursor, 4U);
}

TEST(OutputRing, ForgetsRoomThatWasNotUsed) {
  OutputRing ring(1 << 20);
  ring.prepare(Channel::kStdout);
  write(ring, Channel::kStderr, "x");
  ring.prepare(Channel::kStdout);
  write(ring, Channel::kStderr, "y");
  EXPECT_EQ(read_all(ring), "e:xe:y");
}

TEST(OutputRing, DropsTheOldestAndKeepsItsBound) {
  OutputRing ring(1 << 20);
  const std::string chunk(10'000, 'x');
  for (int i = 0; i < 1000; ++i) write(ring, Channel::kStdout, chunk);
  EXPECT_EQ(ring.end(), 10'000'000U);
  EXPECT_GT(ring.begin(), 0U);
  EXPECT_LE(ring.memory(), std::size_t{1} << 20);
  EXPECT_GT(ring.end() - ring.begin(), 900'000U);
}

TEST(OutputRing, KeepsItsBoundWithTinyAlternatingPieces) {
  OutputRing ring(1 << 20);
  for (int i = 0; i < 100'000; ++i) {
    write(ring, i % 2 == 0 ? Channel::kStdout : Channel::kStderr, "x");
  }
  EXPECT_LE(ring.memory(), std::size_t{1} << 20);
  EXPECT_EQ(ring.end(), 100'000U);
}

TEST(OutputRing, TellsWhenTheNextPieceCostsTheOldest) {
  OutputRing ring(256 << 10);
  while (!ring.full()) write(ring, Channel::kStdout, std::string(1000, 'x'));
  EXPECT_EQ(ring.begin(), 0U);
  const std::uint64_t oldest_end = ring.oldest_end();
  EXPECT_GT(oldest_end, 0U);
  ring.drop_oldest();
  EXPECT_EQ(ring.begin(), oldest_end);
}

TEST(OutputRing, CursorsOutliveClearing) {
  OutputRing ring(1 << 20);
  write(ring, Channel::kStdout, "abc");
  ring.clear();
  EXPECT_EQ(ring.begin(), 3U);
  EXPECT_EQ(ring.end(), 3U);
  EXPECT_EQ(ring.memory(), 0U);
  write(ring, Channel::kStdout, "d");
  EXPECT_EQ(read_all(ring), "o:d");
}

}  // namespace
}  // namespace glovebox::agent
