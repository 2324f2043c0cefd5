#include "base/time.h"

#include "base/text.h"

namespace glovebox {
namespace {

// Reads fixed-width numbers and single characters; after a fault everything fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int digits(std::size_t n) {
    int value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const char c = take();
      if (c < '0' || c > '9') ok_ = false;
      value = value * 10 + (c - '0');
    }
    return ok_ ? value : 0;
  }
  char take() {
    if (rest_.empty()) {
      ok_ = false;
      return '\0';
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void expect(std::string_view any_of) {
    if (any_of.find(take()) == std::string_view::npos) ok_ = false;
  }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int fraction_ms(Scanner& in) {
  if (in.peek() != '.') return 0;
  in.take();
  int ms = in.digits(1) * 100;
  for (const int unit : {10, 1}) {
    if (is_digit(in.peek())) ms += in.digits(1) * unit;
  }
  while (is_digit(in.peek())) in.take();
  return ms;
}

std::chrono::minutes offset(Scanner& in) {
  const char sign = in.take();
  if (sign == 'Z' || sign == 'z') return {};
  const int h = in.digits(2);
  in.expect(":");
  const int m = in.digits(2);
  if ((sign != '+' && sign != '-') || h > 23 || m > 59) in.expect("");
  const std::chrono::minutes ahead(h * 60 + m);
  return sign == '-' ? -ahead : ahead;
}

}  // namespace

std::string to_rfc3339(WallTime t) {
  std::string out;
  append_rfc3339(out, to_unix_ms(t));
  return out;
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  Scanner in(text);
  const int year = in.digits(4);
  in.expect("-");
  const int month = in.digits(2);
  in.expect("-");
  const int day = in.digits(2);
  in.expect("Tt ");
  const int hour = in.digits(2);
  in.expect(":");
  const int minute = in.digits(2);
  in.expect(":");
  const int second = in.digits(2);
  const int ms = fraction_ms(in);
  const std::chrono::minutes ahead = offset(in);
  if (!in.done()) return std::nullopt;

  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  // Second 60 is a leap second: RFC 3339 allows it, and it counts as the next minute's first.
  if (!date.ok() || year < 1970 || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + Millis(ms) - ahead;
}

}  // namespace glovebox
