#include "warden/client/runtime.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "async/coro.h"
#include "async/gate.h"
#include "warden/client/dial.h"
#include "warden/client/exchange.h"
#include "warden/client/stock.h"

namespace glovebox::warden {
namespace {

constexpr std::uint8_t kFetch = 8;      // Sockets asked for at a time.
constexpr std::size_t kEachMax = 16;    // Kept a sandbox and family.
constexpr std::size_t kFetchBelow = 3;  // Left in stock.
constexpr auto kStockIdle = std::chrono::seconds(60);

Error shutting_down() { return {Errc::kUnavailable, "shutting down"}; }

Error unknown(const std::string& name) { return {Errc::kNotFound, "no sandbox " + name}; }

sandbox::Usage from_wire(const UsageReply& u) {
  sandbox::Usage usage;
  usage.cpu_us = u.cpu_us;
  usage.memory_bytes = u.memory_bytes;
  usage.memory_limit_bytes = u.memory_limit_bytes;
  usage.memory_peak_bytes = u.memory_peak_bytes;
  usage.disk_used_bytes = u.disk_used_bytes;
  usage.disk_limit_bytes = u.disk_limit_bytes;
  usage.pids = u.pids;
  usage.pids_limit = u.pids_limit;
  usage.cpu_millis = u.cpu_millis;
  usage.oom_kills = u.oom_kills;
  return usage;
}

}  // namespace

struct WardenRuntime::Impl {
  struct Known {
    std::string agent_socket;
    bool ending = false;  // We asked for its end: that is no exit to tell of.
  };

  Impl(const Executor& ex, ClientConfig config, log::Logger& l)
      : executor(ex),
        log(l),
        gate(ex),
        sweep_timer(ex),
        stock(config.sockets_kept_max, kEachMax),
        exchange(ex, std::move(config), l,
                 {[this](std::vector<ListEntry> all) { on_connected(std::move(all)); },
                  [this](ExitedEvent e) { on_exited(e.name, std::move(e.reason)); },
                  [this](const std::string& name, CreateReply made) {
                    known[name] = Known{std::move(made.agent_socket)};
                  }}) {}

  void on_connected(std::vector<ListEntry> all);
  void on_exited(const std::string& name, std::string reason);
  Task<Result<Exchange::Reply>> ask_by_name(Op op, std::string name, Deadline deadline);
  Task<Result<UniqueFd>> socket_of(std::string name, Family family, Deadline deadline);
  Task<Result<std::vector<UniqueFd>>> fetch(std::string name, Family family, std::uint8_t count,
                                            Deadline deadline);
  Task<void> restock(async::Gate::Pass pass, std::string name, Family family);
  Task<Result<UniqueFd>> dial(std::string name, Family family, std::uint16_t port,
                              Deadline deadline);
  Task<void> keep_connected(async::Gate::Pass pass);
  Task<void> drop_idle_stock(async::Gate::Pass pass);

  const Executor executor;
  log::Logger& log;
  async::Gate gate;
  Timer sweep_timer;
  bool closing = false;
  sandbox::ExitListener listener;
  std::map<std::string, Known> known;
  SocketStock stock;
  std::unordered_set<std::string> restocking;
  Exchange exchange;
};

WardenRuntime::WardenRuntime(const Executor& executor, ClientConfig config, log::Logger& log)
    : impl_(std::make_unique<Impl>(executor, std::move(config), log)) {}
WardenRuntime::~WardenRuntime() = default;

void WardenRuntime::start() {
  Impl& impl = *impl_;
  if (auto pass = impl.gate.enter()) {
    boost::asio::co_spawn(impl.executor, impl.keep_connected(*std::move(pass)),
                          boost::asio::detached);
  }
  if (auto pass = impl.gate.enter()) {
    boost::asio::co_spawn(impl.executor, impl.drop_idle_stock(*std::move(pass)),
                          boost::asio::detached);
  }
}

Task<void> WardenRuntime::close() {
  impl_->closing = true;
  impl_->sweep_timer.cancel();
  impl_->exchange.close();
  co_await impl_->gate.close();
}

bool WardenRuntime::connected() const noexcept { return impl_->exchange.connected(); }

void WardenRuntime::on_exit(sandbox::ExitListener listener) {
  impl_->listener = std::move(listener);
}

Task<void> WardenRuntime::Impl::keep_connected(async::Gate::Pass) { co_await exchange.run(); }

Task<void> WardenRuntime::Impl::drop_idle_stock(async::Gate::Pass) {
  while (!closing) {
    sweep_timer.expires_after(kStockIdle / 2);
    co_await sweep_timer.async_wait(use_result);
    stock.drop_unused_since(Clock::now() - kStockIdle);
  }
}

void WardenRuntime::Impl::on_connected(std::vector<ListEntry> all) {
  std::map<std::string, Known> now;
  for (ListEntry& e : all) {
    const auto before = known.find(e.name);
    const bool ending = before != known.end() && before->second.ending;
    now[std::move(e.name)] = Known{std::move(e.agent_socket), ending};
  }
  std::vector<std::string> gone;
  for (const auto& [name, entry] : known) {
    if (!now.contains(name) && !entry.ending) gone.push_back(name);
  }
  for (const std::string& name : gone) on_exited(name, "ended while the warden was away");
  known = std::move(now);
}

void WardenRuntime::Impl::on_exited(const std::string& name, std::string reason) {
  const auto it = known.find(name);
  if (it == known.end()) return;
  const bool ending = it->second.ending;
  known.erase(it);
  stock.drop(name);
  if (!ending && listener) listener(SandboxId(name), std::move(reason));
}

Task<Result<void>> WardenRuntime::create(sandbox::LaunchSpec spec, Deadline deadline) {
  Impl& impl = *impl_;
  const auto pass = impl.gate.enter();
  if (!pass) co_return shutting_down();
  const std::string name = spec.id.str();
  if (impl.known.contains(name)) {
    co_return Error(Errc::kConflict, "there is a sandbox " + name + " already");
  }
  CreateRequest request;
  request.name = name;
  request.template_id = spec.template_id;
  request.memory_bytes = spec.limits.memory_bytes;
  request.disk_bytes = spec.limits.disk_bytes;
  request.cpu_millis = spec.limits.cpu_millis;
  request.pids = spec.limits.pids;
  std::string payload = encode_payload(request);
  // After a lost connection the list tells whether the warden had got to it.
  std::function<bool()> done_already = [&impl, name] { return impl.known.contains(name); };
  Result<Exchange::Reply> reply = co_await impl.exchange.call(
      Op::kCreate, std::move(payload), deadline, name, std::move(done_already));
  if (!reply) co_return std::move(reply).error();
  co_return Result<void>();
}

Task<Result<Exchange::Reply>> WardenRuntime::Impl::ask_by_name(Op op, std::string name,
                                                               Deadline deadline) {
  const auto pass = gate.enter();
  if (!pass) co_return shutting_down();
  NameRequest request;
  request.name = std::move(name);
  std::string payload = encode_payload(request);
  co_return co_await exchange.call(op, std::move(payload), deadline);
}

Task<Result<void>> WardenRuntime::destroy(SandboxId id, Deadline deadline) {
  Impl& impl = *impl_;
  const auto pass = impl.gate.enter();
  if (!pass) co_return shutting_down();
  const std::string& name = id.str();
  const auto entry = impl.known.find(name);
  if (entry != impl.known.end()) entry->second.ending = true;
  impl.stock.drop(name);
  Result<Exchange::Reply> reply = co_await impl.ask_by_name(Op::kDestroy, name, deadline);
  const auto now = impl.known.find(name);
  if (reply) {
    if (now != impl.known.end()) impl.known.erase(now);
    impl.stock.drop(name);
    co_return Result<void>();
  }
  if (now != impl.known.end()) now->second.ending = false;
  co_return std::move(reply).error();
}

Task<Result<void>> WardenRuntime::freeze(SandboxId id, Deadline deadline) {
  Result<Exchange::Reply> reply = co_await impl_->ask_by_name(Op::kFreeze, id.str(), deadline);
  if (!reply) co_return std::move(reply).error();
  co_return Result<void>();
}

Task<Result<void>> WardenRuntime::thaw(SandboxId id, Deadline deadline) {
  Result<Exchange::Reply> reply = co_await impl_->ask_by_name(Op::kThaw, id.str(), deadline);
  if (!reply) co_return std::move(reply).error();
  co_return Result<void>();
}

Task<Result<sandbox::Usage>> WardenRuntime::usage(SandboxId id, Deadline deadline) {
  Result<Exchange::Reply> reply = co_await impl_->ask_by_name(Op::kUsage, id.str(), deadline);
  if (!reply) co_return std::move(reply).error();
  GB_CO_TRY_ASSIGN(const UsageReply usage, decode_payload<UsageReply>(reply->payload));
  co_return from_wire(usage);
}

Task<Result<std::vector<sandbox::Live>>> WardenRuntime::list(Deadline deadline) {
  Impl& impl = *impl_;
  const auto pass = impl.gate.enter();
  if (!pass) co_return shutting_down();
  std::vector<sandbox::Live> all;
  ListRequest request;
  for (bool more = true; more;) {
    std::string payload = encode_payload(request);
    Result<Exchange::Reply> reply =
        co_await impl.exchange.call(Op::kList, std::move(payload), deadline);
    if (!reply) co_return std::move(reply).error();
    GB_CO_TRY_ASSIGN(const ListReply page, decode_payload<ListReply>(reply->payload));
    for (const ListEntry& e : page.entries) {
      all.push_back({SandboxId(e.name), e.frozen != 0});
      request.after = e.name;
    }
    more = page.more != 0 && !page.entries.empty();
  }
  co_return all;
}

Task<Result<UniqueFd>> WardenRuntime::open_agent(SandboxId id, Deadline deadline) {
  Impl& impl = *impl_;
  const auto pass = impl.gate.enter();
  if (!pass) co_return shutting_down();
  const auto it = impl.known.find(id.str());
  if (it == impl.known.end()) co_return unknown(id.str());
  std::string path = it->second.agent_socket;
  co_return co_await connect_path(impl.executor, std::move(path), deadline);
}

Task<Result<UniqueFd>> WardenRuntime::open_port(SandboxId id, std::uint16_t port,
                                                Deadline deadline) {
  Impl& impl = *impl_;
  const auto pass = impl.gate.enter();
  if (!pass) co_return shutting_down();
  if (port == 0) co_return Error(Errc::kInvalid, "port 0 cannot be connected to");
  const std::string& name = id.str();
  if (!impl.known.contains(name)) co_return unknown(name);
  Result<UniqueFd> fd = co_await impl.dial(name, Family::kV4, port, deadline);
  if (fd || fd.error().sys_errno() != ECONNREFUSED) co_return fd;
  // Many programs listen on "localhost", which may mean ::1 only.
  fd = co_await impl.dial(name, Family::kV6, port, deadline);
  if (fd || fd.error().code() == Errc::kTimeout) co_return fd;
  co_return Error(Errc::kUnavailable,
                  "nothing listens on port " + std::to_string(port) + " in sandbox " + name);
}

Task<Result<UniqueFd>> WardenRuntime::Impl::dial(std::string name, Family family,
                                                 std::uint16_t port, Deadline deadline) {
  Result<UniqueFd> socket = co_await socket_of(name, family, deadline);
  if (!socket) co_return socket;
  co_return co_await connect_port(executor, *std::move(socket), family, port, deadline);
}

Task<Result<UniqueFd>> WardenRuntime::Impl::socket_of(std::string name, Family family,
                                                      Deadline deadline) {
  std::optional<UniqueFd> kept = stock.take(name, family, Clock::now());
  if (kept) {
    // Asked for in time: the next one must not wait, either.
    if (stock.size(name, family) < kFetchBelow && !restocking.contains(name)) {
      if (auto pass = gate.enter()) {
        boost::asio::co_spawn(executor, restock(*std::move(pass), name, family),
                              boost::asio::detached);
      }
    }
    co_return *std::move(kept);
  }
  // A burst finds the stock empty: the first fetches for later ones, the others for themselves.
  const bool first = restocking.insert(name).second;
  const std::uint8_t count = first ? kFetch : 1;
  Result<std::vector<UniqueFd>> fetched = co_await fetch(name, family, count, deadline);
  if (first) restocking.erase(name);
  if (!fetched) co_return std::move(fetched).error();
  UniqueFd one = std::move(fetched->back());
  fetched->pop_back();
  if (known.contains(name)) stock.put(name, family, *std::move(fetched), Clock::now());
  co_return one;
}

Task<Result<std::vector<UniqueFd>>> WardenRuntime::Impl::fetch(std::string name, Family family,
                                                               std::uint8_t count,
                                                               Deadline deadline) {
  SocketsRequest request;
  request.name = std::move(name);
  request.count = count;
  request.ipv6 = family == Family::kV6 ? 1 : 0;
  std::string payload = encode_payload(request);
  Result<Exchange::Reply> reply =
      co_await exchange.call(Op::kSockets, std::move(payload), deadline);
  if (!reply) co_return std::move(reply).error();
  if (reply->fds.empty()) co_return Error(Errc::kInternal, "the warden sent no sockets");
  co_return std::move(reply->fds);
}

Task<void> WardenRuntime::Impl::restock(async::Gate::Pass, std::string name, Family family) {
  if (!restocking.insert(name).second) co_return;
  const Deadline deadline = after(std::chrono::seconds(5));
  Result<std::vector<UniqueFd>> fetched = co_await fetch(name, family, kFetch, deadline);
  restocking.erase(name);
  // Failing is no harm: the next one asks for itself.
  if (fetched && known.contains(name)) {
    stock.put(name, family, *std::move(fetched), Clock::now());
  }
}

}  // namespace glovebox::warden
