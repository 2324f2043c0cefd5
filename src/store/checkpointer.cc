#include "store/checkpointer.h"

#include <pthread.h>
#include <sqlite3.h>

#include <csignal>
#include <utility>

namespace glovebox::store {
namespace {

constexpr int kHoldBackPages = 16'000;  // 64 MiB.
constexpr int kFewPages = 200;
constexpr int kRounds = 5;
constexpr int kBusyTimeoutMs = 1000;

}  // namespace

void Checkpointer::Close::operator()(sqlite3* db) const { ::sqlite3_close_v2(db); }

Checkpointer::Checkpointer(std::unique_ptr<sqlite3, Close> db) : db_(std::move(db)) {
  // Signals are the main thread's: a thread inherits the mask it is made under.
  ::sigset_t all;
  ::sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(const std::string& path) {
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  const int rc = ::sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  std::unique_ptr<sqlite3, Close> db(raw);
  if (rc != SQLITE_OK) {
    return Error(Errc::kInternal, std::string("second connection: ") + ::sqlite3_errmsg(raw));
  }
  ::sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  // A connection learns that there is a WAL when it reads; before that it checkpoints nothing, and
  // reports success.
  const int read =
      ::sqlite3_exec(raw, "SELECT count(*) FROM sqlite_master", nullptr, nullptr, nullptr);
  if (read != SQLITE_OK) {
    return Error(Errc::kInternal, std::string("second connection: ") + ::sqlite3_errmsg(raw));
  }
  return std::unique_ptr<Checkpointer>(new Checkpointer(std::move(db)));
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Checkpointer::request() {
  {
    const std::lock_guard lock(mutex_);
    requested_ = true;
  }
  changed_.notify_one();
}

// PASSIVE waits for nobody and lets commits go on; what it leaves is for the next time. Under a
// steady load there is always a commit that came meanwhile, though, and the WAL only starts anew
// when there is none. So when it has grown long, commits are held back while the last few pages are
// moved.
void Checkpointer::checkpoint() {
  int pages = 0;
  int done = 0;
  for (int round = 0; round < kRounds; ++round) {
    ::sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &done);
    if (pages < kHoldBackPages) return;
    if (pages - done < kFewPages) break;
  }
  if (done < pages) {
    ::sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  }
}

void Checkpointer::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return requested_ || ending_; });
      if (ending_) return;
      requested_ = false;
    }
    checkpoint();
  }
}

}  // namespace glovebox::store
