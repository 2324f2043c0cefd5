#include "warden/client/exchange.h"

#include <list>
#include <unordered_map>
#include <utility>

#include "async/coro.h"
#include "warden/client/turnstile.h"

namespace glovebox::warden {
namespace {

Error shutting_down() { return {Errc::kUnavailable, "shutting down"}; }

// What waits for something to happen in this object, taken off the list however its wait ends.
class Waiting {
 public:
  Waiting(std::list<Timer*>& list, const Executor& executor, Deadline deadline)
      : timer(executor, deadline), list_(list), at_(list.insert(list.end(), &timer)) {}
  ~Waiting() { list_.erase(at_); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  Timer timer;

 private:
  std::list<Timer*>& list_;
  std::list<Timer*>::iterator at_;
};

void wake_all(std::list<Timer*>& list) {
  for (Timer* t : list) t->cancel();
}

}  // namespace

struct Exchange::Impl {
  // One request on one connection, in the frame of the coroutine that awaits it.
  struct Pending {
    Pending(Impl& i, std::uint32_t number, std::string for_name, Deadline deadline)
        : impl(i), id(number), name(std::move(for_name)), timer(i.executor, deadline) {
      impl.pending.emplace(id, this);
    }
    ~Pending() {
      impl.pending.erase(id);
      // It may yet succeed, and then the sandbox is there.
      if (!reply && !lost && !name.empty()) impl.abandoned.emplace(id, name);
    }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

    Impl& impl;
    const std::uint32_t id;
    const std::string name;
    Timer timer;
    bool lost = false;
    std::optional<Packet> reply;
  };

  Impl(const Executor& ex, ClientConfig c, log::Logger& l, Events e)
      : executor(ex),
        config(std::move(c)),
        log(l),
        events(std::move(e)),
        turnstile(ex, config.in_flight_max, config.waiting_max),
        pause(ex) {}

  Task<Result<void>> await_connection(Deadline deadline);
  Task<Result<std::shared_ptr<Link>>> open();
  Task<Result<std::vector<ListEntry>>> handshake(std::shared_ptr<Link> on);
  Task<Result<Packet>> ask(std::shared_ptr<Link> on, Op op, std::string payload);
  Task<Error> serve(std::shared_ptr<Link> on);
  Task<Result<Reply>> call_once(Op op, const std::string& payload, Deadline deadline,
                                const std::string& name, bool& lost);
  void dispatch(Packet packet);
  void lose_all();
  void tell_exit(const Message& event);
  void tell_created(const std::string& name, const Message& reply);

  const Executor executor;
  const ClientConfig config;
  log::Logger& log;
  const Events events;
  Turnstile turnstile;
  Timer pause;  // Between two attempts to connect.
  std::shared_ptr<Link> opening;
  std::shared_ptr<Link> link;  // Set while it serves.
  bool closing = false;
  std::uint32_t next_id = 1;
  std::unordered_map<std::uint32_t, Pending*> pending;
  std::unordered_map<std::uint32_t, std::string> abandoned;  // Creates, by id.
  std::list<Timer*> for_connection;
};

Exchange::Exchange(const Executor& executor, ClientConfig config, log::Logger& log, Events events)
    : impl_(std::make_unique<Impl>(executor, std::move(config), log, std::move(events))) {}
Exchange::~Exchange() = default;

bool Exchange::connected() const noexcept { return impl_->link != nullptr; }

void Exchange::close() {
  Impl& impl = *impl_;
  impl.closing = true;
  impl.turnstile.shut();
  impl.pause.cancel();
  if (impl.opening) impl.opening->close();
  if (impl.link) impl.link->close();
  impl.lose_all();
  wake_all(impl.for_connection);
}

Task<void> Exchange::run() {
  Impl& impl = *impl_;
  Clock::duration back_off = impl.config.reconnect_min;
  bool told = false;
  while (!impl.closing) {
    Result<std::shared_ptr<Link>> opened = co_await impl.open();
    if (opened && !impl.closing) {
      impl.log.info("connected to the warden", {{"socket", impl.config.socket_path}});
      back_off = impl.config.reconnect_min;
      told = false;
      const Error end = co_await impl.serve(*opened);
      if (!impl.closing) impl.log.warn("lost the warden", {{"error", end}});
    } else if (!opened && !told && !impl.closing) {
      told = true;  // Once for a row of attempts.
      impl.log.warn("cannot reach the warden",
                    {{"socket", impl.config.socket_path}, {"error", opened.error()}});
    }
    if (impl.closing) break;
    impl.pause.expires_after(back_off);
    co_await impl.pause.async_wait(use_result);
    back_off = std::min(back_off * 2, impl.config.reconnect_max);
  }
}

// A connection that is ready to serve: greeted, subscribed, and its list told.
Task<Result<std::shared_ptr<Link>>> Exchange::Impl::open() {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Link> on, Link::connect(executor, config.socket_path));
  opening = on;
  const auto limit = std::make_shared<Timer>(executor, after(config.handshake_within));
  limit->async_wait([on, limit](boost::system::error_code cancelled) {
    if (!cancelled) on->close();
  });
  Result<std::vector<ListEntry>> list = co_await handshake(on);
  limit->cancel();
  opening.reset();
  if (!list) co_return std::move(list).error();
  events.connected(*std::move(list));
  co_return on;
}

Task<Result<std::vector<ListEntry>>> Exchange::Impl::handshake(std::shared_ptr<Link> on) {
  std::string payload = encode_payload(HelloRequest{});
  Result<Packet> hello = co_await ask(on, Op::kHello, std::move(payload));
  if (!hello) co_return std::move(hello).error();
  // Before the list, so that no exit falls between the two.
  Result<Packet> subscribed = co_await ask(on, Op::kSubscribe, std::string());
  if (!subscribed) co_return std::move(subscribed).error();
  std::vector<ListEntry> all;
  for (bool more = true; more;) {
    ListRequest request;
    if (!all.empty()) request.after = all.back().name;
    payload = encode_payload(request);
    Result<Packet> page = co_await ask(on, Op::kList, std::move(payload));
    if (!page) co_return std::move(page).error();
    GB_CO_TRY_ASSIGN(ListReply reply, decode_payload<ListReply>(page->message.payload));
    more = reply.more != 0 && !reply.entries.empty();
    for (ListEntry& e : reply.entries) all.push_back(std::move(e));
  }
  co_return all;
}

// For the handshake, when there is one request at a time. Events may come in between.
Task<Result<Packet>> Exchange::Impl::ask(std::shared_ptr<Link> on, Op op, std::string payload) {
  const std::uint32_t id = next_id++;
  const std::string message = encode({id, op, 0}, payload);
  GB_CO_TRY(on->post(message));
  for (;;) {
    Result<Packet> packet = co_await on->receive();
    if (!packet) co_return packet;
    const Header& h = packet->message.header;
    if (h.id == 0) {
      tell_exit(packet->message);
    } else if (h.id == id) {
      if (h.status != 0) co_return decode_error(packet->message);
      co_return packet;
    }
  }
}

Task<Error> Exchange::Impl::serve(std::shared_ptr<Link> on) {
  link = on;
  wake_all(for_connection);
  for (;;) {
    Result<Packet> packet = co_await on->receive();
    if (!packet) {
      link.reset();
      on->close();
      lose_all();
      co_return std::move(packet).error();
    }
    dispatch(*std::move(packet));
  }
}

void Exchange::Impl::dispatch(Packet packet) {
  const Header h = packet.message.header;
  if (h.id == 0) {
    tell_exit(packet.message);
    return;
  }
  const auto it = pending.find(h.id);
  if (it == pending.end()) {
    // Its caller's time ran out.
    const auto create = abandoned.extract(h.id);
    if (create) tell_created(create.mapped(), packet.message);
    return;
  }
  Pending& call = *it->second;
  // Here and not in the caller's coroutine, which runs later: the next packet may be its exit.
  tell_created(call.name, packet.message);
  call.reply = std::move(packet);
  call.timer.cancel();
}

void Exchange::Impl::tell_exit(const Message& event) {
  if (event.header.op != Op::kExited) return;
  auto exited = decode_payload<ExitedEvent>(event.payload);
  if (exited) events.exited(*std::move(exited));
}

void Exchange::Impl::tell_created(const std::string& name, const Message& reply) {
  if (reply.header.op != Op::kCreate || reply.header.status != 0) return;
  auto made = decode_payload<CreateReply>(reply.payload);
  if (made) events.created(name, *std::move(made));
}

void Exchange::Impl::lose_all() {
  abandoned.clear();  // The next connection's list tells what became of them.
  for (auto& [id, call] : pending) {
    call->lost = true;
    call->timer.cancel();
  }
}

Task<Result<void>> Exchange::Impl::await_connection(Deadline deadline) {
  while (!link && !closing) {
    if (Clock::now() >= deadline) {
      co_return Error(Errc::kUnavailable, "the warden cannot be reached");
    }
    Waiting waiting(for_connection, executor, deadline);
    co_await waiting.timer.async_wait(use_result);
  }
  if (closing) co_return shutting_down();
  co_return Result<void>();
}

Task<Result<Exchange::Reply>> Exchange::Impl::call_once(Op op, const std::string& payload,
                                                        Deadline deadline, const std::string& name,
                                                        bool& lost) {
  Pending call(*this, next_id++, name, deadline);
  if (next_id == 0) next_id = 1;  // 0 is for events.
  lost = false;
  const Result<void> posted = link->post(encode({call.id, op, 0}, payload));
  if (!posted) {
    // The reader sees the same end; until it does, a next attempt must not spin.
    link->close();
    link.reset();
    lost = call.lost = true;
    co_return posted.error();
  }
  co_await call.timer.async_wait(use_result);
  if (call.reply) {
    if (call.reply->message.header.status != 0) co_return decode_error(call.reply->message);
    co_return Reply{std::move(call.reply->message.payload), std::move(call.reply->fds)};
  }
  lost = call.lost;
  if (lost) co_return Error(Errc::kUnavailable, "the warden's connection ended");
  co_return Error(Errc::kTimeout, "the warden did not answer in time");
}

Task<Result<Exchange::Reply>> Exchange::call(Op op, std::string payload, Deadline deadline,
                                             std::string name, std::function<bool()> done_already) {
  Impl& impl = *impl_;
  Result<Turnstile::Place> place = co_await impl.turnstile.enter(deadline);
  if (!place) co_return std::move(place).error();
  for (bool again = false;; again = true) {
    Result<void> up = co_await impl.await_connection(deadline);
    if (!up) co_return std::move(up).error();
    if (again && done_already && done_already()) co_return Reply();
    bool lost = false;
    Result<Reply> reply = co_await impl.call_once(op, payload, deadline, name, lost);
    if (!lost) co_return reply;
  }
}

}  // namespace glovebox::warden
