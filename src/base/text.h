// Text from strangers, made safe to print: UTF-8 checks and JSON string escaping.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glovebox {

// The code point that starts at `at`, and moves `at` past it. Where the bytes are not UTF-8
// (overlong forms and surrogates are not), returns U+FFFD and moves on by one byte.
// `at` must be less than the size.
char32_t next_code_point(std::string_view text, std::size_t& at) noexcept;
bool is_utf8(std::string_view text) noexcept;

// ASCII letters compare without regard to case, as in HTTP's names; everything else byte by byte.
bool iequals(std::string_view a, std::string_view b) noexcept;
bool istarts_with(std::string_view text, std::string_view prefix) noexcept;

// Appends `text` in quotes, by RFC 8259, with each broken byte as U+FFFD and every control
// character (C1 and DEL too: a terminal may act on them) as \u00xx.
void append_json_string(std::string& out, std::string_view text);

// "2026-12-01T01:30:00.123Z" for milliseconds since 1970. Years 0000 to 9999; others are clamped.
void append_rfc3339(std::string& out, std::int64_t unix_ms);

}  // namespace glovebox
