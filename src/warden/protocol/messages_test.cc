#include "warden/protocol/messages.h"

#include <gtest/gtest.h>

namespace glovebox::warden {
namespace {

TEST(WardenMessages, ComeBackAsTheyWere) {
  const CreateRequest sent{"sb-1", "host", 1ULL << 40, 7, 1500, 64};
  auto m = decode_message(encode({42, Op::kCreate, 0}, encode_payload(sent)));
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m->header.id, 42U);
  auto got = decode_payload<CreateRequest>(m->payload);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->name, "sb-1");
  EXPECT_EQ(got->memory_bytes, 1ULL << 40);
  EXPECT_EQ(got->cpu_millis, 1500U);
}

TEST(WardenMessages, ListsKeepTheirOrder) {
  const ListReply sent{{{"a", "/run/a", 0}, {"b", "/run/b", 1}}, 1};
  auto got = decode_payload<ListReply>(encode_payload(sent));
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ(got->entries.size(), 2U);
  EXPECT_EQ(got->entries[1].name, "b");
  EXPECT_EQ(got->entries[1].frozen, 1);
  EXPECT_EQ(got->more, 1);
}

TEST(WardenMessages, EveryTruncationIsRefused) {
  const std::string whole = encode_payload(CreateRequest{"sb-1", "host", 1, 2, 3, 4});
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(decode_payload<CreateRequest>(whole.substr(0, n))) << n;
  }
  EXPECT_FALSE(decode_payload<CreateRequest>(whole + "x"));
}

TEST(WardenMessages, ALyingCountCostsNothing) {
  EXPECT_FALSE(decode_payload<ListReply>(std::string("\xff\xff\xff\xff", 4)));
  EXPECT_FALSE(decode_payload<NameRequest>(std::string("\xff\xff\xff\xff", 4)));
}

TEST(WardenMessages, ErrorsKeepTheirCode) {
  auto m = decode_message(encode_error(7, Op::kFreeze, Error(Errc::kConflict, "it is frozen")));
  ASSERT_TRUE(m);
  EXPECT_EQ(decode_error(*m).code(), Errc::kConflict);
  EXPECT_EQ(decode_error(*m).text(), "it is frozen");
}

TEST(WardenMessages, UnknownOperationsAndStatusesAreRefused) {
  EXPECT_FALSE(decode_message(encode({1, static_cast<Op>(999), 0}, "")));
  EXPECT_FALSE(decode_message(encode({1, Op::kList, 99}, "")));
  EXPECT_FALSE(decode_message("short"));
}

}  // namespace
}  // namespace glovebox::warden
