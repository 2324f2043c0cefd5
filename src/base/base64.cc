#include "base/base64.h"

#include <array>
#include <cstdint>

namespace glovebox {
namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> values_of(std::string_view alphabet) {
  std::array<std::int8_t, 256> values{};
  for (auto& v : values) v = -1;
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kStandardValues = values_of(kStandard);
constexpr auto kUrlValues = values_of(kUrl);

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}

std::string encode(std::string_view bytes, std::string_view alphabet) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group =
        byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);
    const std::size_t digits = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (std::size_t d = 0; d < digits; ++d) {
      out.push_back(alphabet[group >> (18 - 6 * d) & 63]);
    }
  }
  return out;
}

// Without padding.
std::optional<std::string> decode(std::string_view text,
                                  const std::array<std::int8_t, 256>& values) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char c : text) {
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out.push_back(static_cast<char>(bits >> have & 0xff));
    }
  }
  if ((bits & ((1U << have) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out = encode(bytes, kStandard);
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

std::string to_base64url(std::string_view bytes) { return encode(bytes, kUrl); }

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return decode(text, kStandardValues);
}

std::optional<std::string> from_base64url(std::string_view text) {
  return decode(text, kUrlValues);
}

}  // namespace glovebox
