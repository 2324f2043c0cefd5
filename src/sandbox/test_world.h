// The domain with a clock and a runtime in a test's hands. For *_test.cc only.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/coro.h"
#include "async/fake_time.h"
#include "base/log.h"
#include "base/random.h"
#include "sandbox/fake_runtime.h"
#include "sandbox/repository.h"
#include "sandbox/schema.h"
#include "sandbox/service.h"
#include "store/migrate.h"

namespace glovebox::sandbox {

using namespace std::chrono_literals;
using Call = FakeRuntime::Call;

// A directory that goes with the test; in memory where there is such a place, since each database
// that is closed waits for its disk.
class TempDir {
 public:
  TempDir() : path_(parent() + "sandbox-" + random_name(12)) {
    std::filesystem::create_directory(path_);
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  static std::string parent() {
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir();
  }
  std::string path_;
};

inline store::Database open_db(const std::string& path) {
  auto db = store::Database::open(path, {.check_integrity = false});
  EXPECT_TRUE(db) << (db ? "" : db.error().text());
  EXPECT_TRUE(store::migrate(*db, migrations()));
  return std::move(db).value();
}

// What a task gave, once it has.
template <class T>
using Slot = std::shared_ptr<std::optional<T>>;

class World {
 public:
  explicit World(ServiceConfig c = {}) : config(std::move(c)) { boot(async::FakeTime::kFirstWall); }
  ~World() { halt(); }

  // The daemon dies without a word and starts again after `away`. The sandboxes live on.
  void crash(Millis away = Millis(0)) {
    const auto live = runtime->live;
    const auto destroyed = runtime->destroyed;
    const WallTime wall = time->wall() + away;
    halt();
    boot(wall, live, destroyed);
  }
  void halt() {
    service.reset();
    io.reset();
    runtime.reset();
    time.reset();
    db.reset();
  }

  // Begins a task and runs what needs no time.
  template <class T>
  Slot<T> begin(Task<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    boost::asio::co_spawn(*io, std::move(task), [slot](std::exception_ptr e, T value) {
      if (!e) *slot = std::move(value);
    });
    time->settle();
    return slot;
  }
  // The same for one that must end without time passing.
  template <class T>
  T now(Task<T> task) {
    const Slot<T> slot = begin(std::move(task));
    EXPECT_TRUE(slot->has_value()) << "it waits for something";
    return slot->has_value() ? std::move(**slot) : T();
  }

  Sandbox make(CreateSpec spec = {}, std::string key = "") {
    Result<Sandbox> made = now(service->create(std::move(spec), std::move(key)));
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
    return made ? std::move(made).value() : Sandbox();
  }
  Result<Sandbox> get(const SandboxId& id) { return now(service->get(id)); }
  State state(const SandboxId& id) {
    const auto s = get(id);
    return s ? s.value().state : State::kCreating;
  }
  std::string reason(const SandboxId& id) { return (*get(id)).reason; }
  std::vector<Sandbox> all() {
    std::vector<Sandbox> out;
    std::string cursor;
    for (;;) {
      Result<Page> page = now(service->list({}, 1000, cursor));
      EXPECT_TRUE(page);
      if (!page) return out;
      for (Sandbox& s : page->sandboxes) out.push_back(std::move(s));
      if (!page->next_cursor) return out;
      cursor = *page->next_cursor;
    }
  }
  SandboxRepository rows() { return SandboxRepository(*db); }

  ServiceConfig config;
  TempDir dir;
  log::Logger log{STDERR_FILENO, log::Level::kError, log::Form::kConsole};
  std::unique_ptr<store::Database> db;
  std::unique_ptr<boost::asio::io_context> io;
  std::unique_ptr<async::FakeTime> time;
  std::unique_ptr<FakeRuntime> runtime;
  std::unique_ptr<SandboxService> service;

  // For a test that wants to set the runtime up before the service asks it anything.
  bool start_at_boot = true;
  void start() {
    const Result<void> started = service->start();
    EXPECT_TRUE(started) << (started ? "" : started.error().text());
    time->settle();
  }

 private:
  void boot(WallTime wall, std::map<std::string, FakeRuntime::State> live = {},
            std::set<std::string> destroyed = {}) {
    db = std::make_unique<store::Database>(open_db(dir.file("t.db")));
    io = std::make_unique<boost::asio::io_context>(1);
    time = std::make_unique<async::FakeTime>(*io, wall);
    runtime = std::make_unique<FakeRuntime>(*time);
    runtime->live = std::move(live);
    runtime->destroyed = std::move(destroyed);
    service = std::make_unique<SandboxService>(*io, *db, *runtime, *time, log, config);
    if (start_at_boot) start();
  }
};

}  // namespace glovebox::sandbox
