// ApiKeys: who may call. A key is "gbx_" and 43 characters; the store holds only its SHA-256, so
// the database alone opens nothing. Keys have 256 bits of randomness, hence no slow hash.
//
// All keys are in memory too (the daemon is their only writer), so verify() touches no disk but to
// note, at most once a minute, that a key was used.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/time_source.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace glovebox::sandbox {

struct ApiKey {
  std::string id;  // "key-" and 12 characters. Not a secret.
  std::string name;
  WallTime created_at{};
  std::optional<WallTime> last_used_at;
  std::optional<WallTime> revoked_at;
};

class ApiKeys {
 public:
  // Reads all keys. `db` must be migrated; both are borrowed.
  static Result<ApiKeys> load(store::Database& db, const async::TimeSource& time);
  ApiKeys(ApiKeys&&) noexcept;
  ~ApiKeys();

  struct Created {
    ApiKey key;
    std::string secret;  // Shown once; it cannot be had again.
  };
  // `name` is 1 to 128 bytes of UTF-8. kExhausted at 10,000 keys.
  Result<Created> create(std::string_view name);

  // Revoked ones too, oldest first.
  std::vector<ApiKey> list() const;

  // Repeating it succeeds. kNotFound when there never was such a key.
  Result<void> revoke(std::string_view id);

  // kUnauthorized for anything but a key that exists and is not revoked; the text tells nothing
  // more.
  Result<ApiKey> verify(std::string_view presented);

 private:
  struct Impl;
  explicit ApiKeys(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::sandbox
