// Checkpointer: moves what is committed from the WAL into the database, on a thread of its own.
// It calls fsync, which takes from 1 to 100 ms: SQLite's default is to do it inside some commit,
// and so every hundredth request would wait for the disk.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

struct sqlite3;

namespace glovebox::store {

class Checkpointer {
 public:
  // Opens a second connection to `path`, which must be in WAL mode.
  static Result<std::unique_ptr<Checkpointer>> start(const std::string& path);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer();

  // Asks for a checkpoint and returns at once. Asking again before it is done asks for one more.
  void request();

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Checkpointer(std::unique_ptr<sqlite3, Close> db);
  void run();
  void checkpoint();

  std::unique_ptr<sqlite3, Close> db_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  bool ending_ = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace glovebox::store
