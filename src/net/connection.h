// One connection of the server: reads heads, runs the handler, writes replies, one at a time.

#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "net/body_reader.h"
#include "net/head.h"
#include "net/in_buffer.h"
#include "net/server.h"
#include "net/server_impl.h"

namespace glovebox::net {

class Connection final : public Exchange, public Link {
 public:
  Connection(Server::Impl& server, Stream stream, Peer peer);
  ~Connection() override;

  Task<void> run();
  // Ends it when it waits for a request; otherwise the reply in flight will be the last.
  void close_if_idle();
  // Ends it whatever it does.
  void cut();
  // What cancels the coroutine that runs it; defined where Asio is known.
  struct Cancel;
  const std::shared_ptr<Cancel>& cancel() const noexcept { return cancel_; }

  const RequestHead& head() const override { return head_; }
  const Peer& peer() const override { return peer_; }
  const std::string& request_id() const override { return request_id_; }
  Task<Result<std::size_t>> read_body(std::span<char> into) override;
  Task<Result<std::string>> read_whole_body(std::size_t bytes_max) override;
  Task<Result<void>> respond(Response response) override;
  Task<Result<void>> start(int status, Headers headers,
                           std::optional<std::uint64_t> content_length) override;
  Task<Result<void>> write(std::string_view bytes) override;
  Task<Result<void>> finish() override;
  bool started() const override { return reply_ != Reply::kNone && reply_ != Reply::kHead; }
  int status() const override { return status_; }
  void abort() override;
  bool client_gone() const override { return taken_over_ || stream_.peer_gone(); }
  Task<void> wait_client_gone() override;
  Task<Result<std::unique_ptr<WebSocket>>> accept_websocket() override;
  Raw take_over() override;

  // For the relay, which moves bodies past the calls above.
  Stream::Impl& wire() noexcept { return stream_.impl(); }
  BodyReader& body() noexcept { return body_; }
  InBuffer& input() noexcept { return in_; }
  // Sends 100 Continue if the client waits for it.
  Task<Result<void>> allow_body();
  // start() in steps: begins a head in out(), to which the caller may append fields, and ends it.
  // The first write_pieces() sends it together with the first bytes of the body.
  void begin_head(int status, std::optional<std::uint64_t> content_length);
  std::string& out() noexcept { return out_; }
  void end_head();
  void end_upgrade_head(std::string_view protocol);
  // One write of several pieces, as one chunk where the reply is chunked. `last` finishes the
  // reply in the same write. Returns nothing when it has to wait: then write_rest() must follow,
  // with the pieces still there.
  static constexpr std::size_t kPiecesMax = 16;
  struct Outgoing {
    std::array<::iovec, kPiecesMax + 4> parts;
    Parts left{nullptr, 0};
    char space[24];
    bool last = false;
  };
  std::optional<Result<void>> write_now(Outgoing& outgoing,
                                        std::span<const std::string_view> pieces, bool last);
  Task<Result<void>> write_rest(Outgoing& outgoing, Clock::duration idle);
  bool taken_over() const noexcept { return taken_over_; }
  bool head_waits() const noexcept { return reply_ == Reply::kHead; }
  // The bytes of a reply with a length went another way than through write().
  void wrote(std::uint64_t bytes) noexcept { reply_left_ -= bytes; }

 private:
  enum class Reply { kNone, kHead, kStarted, kFinished, kAborted };
  enum class Framing { kNone, kLength, kChunked, kToEnd };

  Task<HeadFault> next_head();
  void begin_exchange();
  std::optional<HeadFault> examine_head();
  HeadFault take_head(std::string_view bytes);
  Task<void> refuse(HeadFault fault);
  Task<void> settle(bool threw);
  Task<bool> drain();
  Task<void> linger();
  Task<Result<void>> write_pieces(std::span<const std::string_view> pieces, bool last);
  void decide_framing(int status, std::optional<std::uint64_t> content_length);
  bool append_headers(const Headers& headers);
  Deadline body_deadline() const;
  Result<void> check_length(std::size_t bytes, bool last);

  Server::Impl& server_;
  Stream stream_;
  Peer peer_;
  std::shared_ptr<Cancel> cancel_;
  InBuffer in_;
  BodyReader body_;
  HeadScanner scanner_;

  RequestHead head_;
  std::string request_id_;
  bool idle_ = true;
  bool keep_alive_ = true;
  bool awaits_continue_ = false;
  bool needs_linger_ = false;
  bool taken_over_ = false;

  Reply reply_ = Reply::kNone;
  int status_ = 0;
  Framing framing_ = Framing::kNone;
  std::uint64_t reply_left_ = 0;
  std::string out_;
};

}  // namespace glovebox::net
