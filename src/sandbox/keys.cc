#include "sandbox/keys.h"

#include <map>
#include <utility>

#include "base/base64.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/text.h"

namespace glovebox::sandbox {
namespace {

using store::Blob;
using store::Rows;

constexpr std::size_t kKeysMax = 10'000;
constexpr std::size_t kNameMax = 128;
constexpr std::size_t kSecretBytes = 32;
constexpr std::string_view kPrefix = "gbx_";
constexpr std::size_t kSecretSize = 4 + 43;  // The prefix, and 32 bytes in base64url.
constexpr std::chrono::minutes kLastUsedStep(1);

Result<void> check_name(std::string_view name) {
  if (name.empty() || name.size() > kNameMax || !is_utf8(name)) {
    return Error(Errc::kInvalid, "name: must be 1 to 128 bytes of UTF-8");
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return Error(Errc::kInvalid, "name: must not hold control characters");
    }
  }
  return {};
}

}  // namespace

struct ApiKeys::Impl {
  struct Stored {
    ApiKey key;
    std::string hash;
  };
  store::Database& db;
  const async::TimeSource& time;
  std::vector<Stored> all;                     // Oldest first; never shrinks.
  std::map<std::string, std::size_t> by_hash;  // Where in `all`. What is compared is a hash.
};

ApiKeys::ApiKeys(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiKeys::ApiKeys(ApiKeys&&) noexcept = default;
ApiKeys::~ApiKeys() = default;

Result<ApiKeys> ApiKeys::load(store::Database& db, const async::TimeSource& time) {
  auto impl = std::make_unique<Impl>(Impl{db, time, {}, {}});
  GB_TRY_ASSIGN(Rows rows, db.query("SELECT id, name, hash, created_at, last_used_at, revoked_at "
                                    "FROM api_keys ORDER BY created_at, rowid"));
  while (rows.next()) {
    impl->by_hash[rows.text(2)] = impl->all.size();
    impl->all.push_back(
        {{rows.text(0), rows.text(1), rows.time(3), rows.maybe_time(4), rows.maybe_time(5)},
         rows.text(2)});
  }
  GB_TRY(rows.done());
  return ApiKeys(std::move(impl));
}

Result<ApiKeys::Created> ApiKeys::create(std::string_view name) {
  GB_TRY(check_name(name));
  if (impl_->all.size() >= kKeysMax) return Error(Errc::kExhausted, "there are 10,000 API keys");
  Created made;
  made.secret = std::string(kPrefix) + to_base64url(random_bytes(kSecretBytes));
  made.key.id = "key-" + random_name(12);
  made.key.name = name;
  made.key.created_at = impl_->time.wall();
  std::string hash = sha256(made.secret);
  GB_TRY(impl_->db.run("INSERT INTO api_keys (id, name, hash, created_at) VALUES (?1, ?2, ?3, ?4)",
                       {made.key.id, name, Blob{hash}, made.key.created_at}));
  impl_->by_hash[hash] = impl_->all.size();
  impl_->all.push_back({made.key, std::move(hash)});
  return made;
}

std::vector<ApiKey> ApiKeys::list() const {
  std::vector<ApiKey> keys;
  keys.reserve(impl_->all.size());
  for (const Impl::Stored& stored : impl_->all) keys.push_back(stored.key);
  return keys;
}

Result<void> ApiKeys::revoke(std::string_view id) {
  for (Impl::Stored& stored : impl_->all) {
    if (stored.key.id != id) continue;
    if (stored.key.revoked_at) return {};
    const WallTime now = impl_->time.wall();
    GB_TRY(impl_->db.run("UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1", {id, now}));
    stored.key.revoked_at = now;
    return {};
  }
  return Error(Errc::kNotFound, "no such API key");
}

Result<ApiKey> ApiKeys::verify(std::string_view presented) {
  const Error refused(Errc::kUnauthorized, "no valid API key");
  if (presented.size() != kSecretSize || !presented.starts_with(kPrefix)) return refused;
  const std::string hash = sha256(presented);
  // The look-up's time depends on the hash, which tells a guesser nothing about the key; the
  // decision is made by a comparison whose time does not.
  const auto it = impl_->by_hash.find(hash);
  if (it == impl_->by_hash.end()) return refused;
  Impl::Stored& stored = impl_->all[it->second];
  if (!equal_in_constant_time(stored.hash, hash) || stored.key.revoked_at) return refused;

  const WallTime now = impl_->time.wall();
  if (!stored.key.last_used_at || now - *stored.key.last_used_at >= kLastUsedStep) {
    stored.key.last_used_at = now;
    // A full disk must not lock everybody out: this is a note, not a decision.
    const auto noted =
        impl_->db.run("UPDATE api_keys SET last_used_at = ?2 WHERE id = ?1", {stored.key.id, now});
    static_cast<void>(noted);
  }
  return stored.key;
}

}  // namespace glovebox::sandbox
