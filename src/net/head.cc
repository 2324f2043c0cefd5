#include "net/head.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <cstring>

#include "net/text.h"

namespace glovebox::net {
namespace beast = boost::beast;
namespace http = boost::beast::http;
using beast::error_code;

HeadScanner::Found HeadScanner::scan(std::string_view bytes) noexcept {
  while (at_ < bytes.size()) {
    const void* found = std::memchr(bytes.data() + at_, '\n', bytes.size() - at_);
    if (found == nullptr) {
      at_ = bytes.size();
      break;
    }
    const auto lf = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    if (lf == line_start_ || bytes[lf - 1] != '\r') return Found::kBad;
    const std::size_t start = line_start_;
    at_ = line_start_ = lf + 1;
    if (lf - 1 == start) return Found::kEnd;
    // RFC 9112, 5.2: a line that continues the one before it.
    if (start > 0 && (bytes[start] == ' ' || bytes[start] == '\t')) return Found::kBad;
  }
  return Found::kMore;
}

namespace {

constexpr std::string_view kHostChars = "-._~%!$&'()*+;=:[]";

bool is_host(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return is_alnum(c) || kHostChars.find(c) != std::string_view::npos;
  });
}

// The fields of either kind of head, as Beast meets them.
template <bool kRequest>
class Parser final : public http::basic_parser<kRequest> {
 public:
  explicit Parser(std::vector<FieldView>& to) : fields(to) { fields.clear(); }

  std::vector<FieldView>& fields;  // Point into the head.
  std::string_view method;
  std::string_view target;
  std::string_view host;
  int status = 0;
  int version = 11;
  int lengths = 0;
  int encodings = 0;
  int hosts = 0;
  bool too_many = false;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;

  // Parses all of `head`, and nothing of what may follow it.
  bool run(std::string_view head) {
    this->eager(false);
    this->header_limit(static_cast<std::uint32_t>(head.size() + 1));
    this->body_limit(boost::none);
    error_code ec;
    const std::size_t used = this->put(boost::asio::const_buffer(head.data(), head.size()), ec);
    return !ec && used == head.size() && this->is_header_done();
  }

  // RFC 9112, 6.1: the one coding that we know is chunked, and only the last may be it.
  const char* framing_fault() const {
    if (lengths > 1) return "more than one Content-Length";
    if (lengths == 1 && !content_length) return "broken Content-Length";
    if (encodings > 1) return "more than one Transfer-Encoding";
    if (encodings == 1 && !chunked) return "Transfer-Encoding other than chunked";
    if (encodings == 1 && version < 11) return "Transfer-Encoding in HTTP/1.0";
    if (encodings == 1 && lengths == 1) return "both Content-Length and Transfer-Encoding";
    return nullptr;
  }

 private:
  void on_request_impl(http::verb, beast::string_view m, beast::string_view t, int v,
                       error_code&) override {
    method = {m.data(), m.size()};
    target = {t.data(), t.size()};
    version = v;
  }
  void on_response_impl(int code, beast::string_view, int v, error_code&) override {
    status = code;
    version = v;
  }
  void on_field_impl(http::field field, beast::string_view name, beast::string_view value,
                     error_code& ec) override {
    const std::string_view text(value.data(), value.size());
    switch (field) {
      case http::field::content_length:
        ++lengths;
        content_length = parse_decimal(text);
        break;
      case http::field::transfer_encoding:
        ++encodings;
        chunked = equal_ignoring_case(text, "chunked");
        break;
      case http::field::host:
        ++hosts;
        host = text;
        break;
      default: break;
    }
    if (fields.size() >= kHeaderCountMax) {
      too_many = true;
      ec = http::error::header_limit;
      return;
    }
    // Within the head: Beast copies a value only to unfold it, and the scanner refuses folds.
    fields.push_back(FieldView{{name.data(), name.size()}, text});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, error_code&) override {
    return 0;
  }
  void on_finish_impl(error_code&) override {}
};

// RFC 9112, 3.2.2: a server takes the absolute form as well, and then it overrides Host.
bool to_origin_form(RequestHead& head) {
  constexpr std::string_view kScheme = "http://";
  if (head.target.front() == '/') return true;
  if (head.target == "*") return head.method == "OPTIONS";
  if (head.target.size() <= kScheme.size() ||
      !equal_ignoring_case(std::string_view(head.target).substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  const std::size_t end =
      std::min(head.target.find_first_of("/?", kScheme.size()), head.target.size());
  std::string host = head.target.substr(kScheme.size(), end - kScheme.size());
  if (host.empty() || !is_host(host)) return false;
  head.headers.set("Host", std::move(host));
  head.target.erase(0, end);
  if (head.target.empty() || head.target.front() != '/') head.target.insert(0, "/");
  return true;
}

bool is_target(std::string_view target) {
  return !target.empty() && std::all_of(target.begin(), target.end(),
                                        [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

}  // namespace

HeadFault parse_request_head(std::string_view bytes, RequestHead& head) {
  static thread_local std::vector<FieldView> fields;
  Parser<true> parser(fields);
  if (!parser.run(bytes)) {
    if (parser.too_many) return {431, "too many headers"};
    return {400, "malformed request"};
  }
  if (const char* fault = parser.framing_fault()) return {400, fault};
  if (parser.hosts > 1) return {400, "more than one Host"};
  if (parser.hosts == 0 && parser.version >= 11) return {400, "no Host"};
  if (!is_host(parser.host)) return {400, "malformed Host"};

  head.method = parser.method;
  head.target = parser.target;
  head.headers.clear();
  head.headers.reserve(fields.size());
  for (const FieldView& field : fields) {
    head.headers.add(std::string(field.name), std::string(field.value));
  }
  head.content_length = parser.content_length;
  head.chunked = parser.chunked;
  head.keep_alive = parser.keep_alive();
  head.http_1_0 = parser.version < 11;
  head.upgrade = parser.upgrade() && head.headers.has("Upgrade");
  if (head.method == "CONNECT") return {501, "CONNECT is not supported"};
  if (!is_target(head.target) || !to_origin_form(head)) return {400, "malformed request target"};
  return {200, ""};
}

std::variant<RequestHead, HeadFault> parse_request_head(std::string_view bytes) {
  RequestHead head;
  const HeadFault fault = parse_request_head(bytes, head);
  if (fault.status != 200) return fault;
  return head;
}

HeadFault parse_response_head(std::string_view bytes, ResponseView& head) {
  Parser<false> parser(head.fields);
  if (!parser.run(bytes)) return {502, "malformed reply"};
  if (const char* fault = parser.framing_fault()) return {502, fault};
  if (parser.status < 100 || parser.status > 599) return {502, "status out of range"};
  head.status = parser.status;
  head.content_length = parser.content_length;
  head.chunked = parser.chunked;
  head.keep_alive = parser.keep_alive();
  return {200, ""};
}

std::variant<ResponseHead, HeadFault> parse_response_head(std::string_view bytes) {
  ResponseView view;
  const HeadFault fault = parse_response_head(bytes, view);
  if (fault.status != 200) return fault;
  ResponseHead head;
  head.status = view.status;
  head.content_length = view.content_length;
  head.chunked = view.chunked;
  head.keep_alive = view.keep_alive;
  head.headers.reserve(view.fields.size());
  for (const FieldView& field : view.fields) {
    head.headers.add(std::string(field.name), std::string(field.value));
  }
  return head;
}

// A parser that has already read the head of a chunked message, whatever the real one was.
struct ChunkDecoder::Parser final : public http::basic_parser<true> {
  std::string_view data;
  std::size_t data_max = 0;
  bool began = false;
  bool done = false;

  Parser() {
    constexpr std::string_view kHead = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    eager(false);
    body_limit(boost::none);
    error_code ec;
    put(boost::asio::const_buffer(kHead.data(), kHead.size()), ec);
  }

 private:
  void on_request_impl(http::verb, beast::string_view, beast::string_view, int,
                       error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_field_impl(http::field, beast::string_view, beast::string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {
    began = true;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, error_code&) override {
    const std::size_t n = std::min(body.size(), data_max);
    data = std::string_view(body.data(), n);
    return n;
  }
  void on_finish_impl(error_code&) override { done = true; }
};

ChunkDecoder::ChunkDecoder() : parser_(std::make_unique<Parser>()) {}
ChunkDecoder::ChunkDecoder(ChunkDecoder&&) noexcept = default;
ChunkDecoder& ChunkDecoder::operator=(ChunkDecoder&&) noexcept = default;
ChunkDecoder::~ChunkDecoder() = default;

ChunkDecoder::Step ChunkDecoder::step(std::string_view bytes, std::size_t data_max) {
  Step out;
  // Beast 1.81 asserts that a last chunk which it sees a second time is five bytes or more, which
  // "0\r\n" at the very beginning of a body is not. The shortest body has five.
  constexpr std::size_t kBodyBytesMin = 5;
  if (!parser_->began && bytes.size() < kBodyBytesMin) return out;
  parser_->data_max = data_max;
  while (!parser_->done) {
    if (out.used == bytes.size()) return out;
    parser_->data = {};
    error_code ec;
    out.used += parser_->put(
        boost::asio::const_buffer(bytes.data() + out.used, bytes.size() - out.used), ec);
    if (!parser_->data.empty()) {
      out.state = State::kData;
      out.data = parser_->data;
      return out;
    }
    if (ec == http::error::need_more) return out;
    if (ec) {
      out.state = State::kBad;
      return out;
    }
  }
  out.state = State::kDone;
  return out;
}

}  // namespace glovebox::net
