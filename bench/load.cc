// glovebox-bench: makes load and measures it. Prints one JSON object: the samples in milliseconds,
// how many failed, how long it took. What they mean is decided by bench/run.
//
//   create  --count N --parallel P [--keep]     create, first command's result; then destroy
//   exec    --count N --id ID                   `echo` in a sandbox, and the same spawned here
//   http    --count N|--seconds S --parallel P --path /x    GETs; also gives requests and bytes
//   put|get --path /x --size BYTES              one large body
//   cycle   --count N --parallel P              create and destroy only
//
// Common: --tcp HOST:PORT | --unix PATH, --header "Name: value" (repeat), --warmup N.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http_client.h"

namespace glovebox::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string mode;
  Target target;
  int count = 0;
  int parallel = 1;
  int warmup = 0;
  double seconds = 0;
  std::uint64_t size = 0;
  std::string id, path, body = "{}";
  bool keep = false;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Outcome {
  std::mutex mutex;
  std::vector<double> samples, second;
  std::vector<std::string> kept;
  std::string first_error;
  int errors = 0;
  std::uint64_t bytes = 0;
  double elapsed_s = 0;

  void error(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (errors++ == 0) first_error = what;
  }
};

std::string describe(const char* what, const Reply& reply) {
  std::string body = reply.body.substr(0, 200);
  for (char& c : body) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '\'';
  }
  return std::string(what) + ": " + std::to_string(reply.status) + " " + body;
}

// The value of a string member at any depth: enough for "id" of a reply we know.
std::string member(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\"");
  if (at == std::string::npos) return {};
  const std::size_t open = json.find('"', json.find(':', at));
  const std::size_t close = json.find('"', open + 1);
  return json.substr(open + 1, close - open - 1);
}

const std::string kSandboxes = "/api/v1/sandboxes";

// One sandbox's life as a client sees it. False when a step failed.
bool create_once(Connection& c, const Options& o, bool command, Outcome& out, double* took) {
  const auto start = Clock::now();
  const Reply created = c.request("POST", kSandboxes, o.body);
  if (created.status != 201) {
    out.error(describe("create", created));
    return false;
  }
  const std::string path = kSandboxes + "/" + member(created.body, "id");
  bool ok = true;
  if (command) {
    const Reply ran = c.request("POST", path + "/exec", R"({"args":["/bin/true"]})");
    ok = ran.status == 200 && ran.body.find("\"exit_code\":0") != std::string::npos;
    if (!ok) out.error(describe("exec", ran));
  }
  *took = ms_since(start);
  if (o.keep) {
    const std::lock_guard lock(out.mutex);
    out.kept.push_back(member(created.body, "id"));
    return ok;
  }
  const Reply gone = c.request("DELETE", path);
  if (gone.status != 204) {
    out.error(describe("delete", gone));
    ok = false;
  }
  return ok;
}

// Runs `work` `count` times, spread over threads with a connection each. Its result is a sample.
template <class Work>
void spread(const Options& o, int count, Outcome& out, Work work) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (int t = 0; t < o.parallel; ++t) {
    threads.emplace_back([&] {
      Connection c(o.target);
      while (next.fetch_add(1) < count) {
        double took = 0;
        if (!work(c, &took)) continue;
        const std::lock_guard lock(out.mutex);
        out.samples.push_back(took);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  out.elapsed_s = ms_since(start) / 1000;
}

void run_create(const Options& o, bool command, Outcome& out) {
  const auto work = [&](Connection& c, double* took) {
    return create_once(c, o, command, out, took);
  };
  if (o.warmup > 0) {
    Outcome ignored;
    spread(o, o.warmup, ignored, [&](Connection& c, double* took) {
      Options once = o;
      once.keep = false;
      return create_once(c, once, command, ignored, took);
    });
  }
  spread(o, o.count, out, work);
}

// The same program directly: what a command costs without any platform.
bool spawn_echo(double* took) {
  const auto start = Clock::now();
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  const char* argv[] = {"/bin/echo", "hello", nullptr};
  const char* env[] = {"PATH=/usr/bin:/bin", nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, argv[0], &actions, nullptr, const_cast<char**>(argv),
                                   const_cast<char**>(env));
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  std::string text;
  char chunk[256];
  for (ssize_t n = 0; (n = ::read(pipe_fds[0], chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(n));
  }
  ::close(pipe_fds[0]);
  if (failed != 0) return false;
  int status = 0;
  ::waitpid(pid, &status, 0);
  *took = ms_since(start);
  return text == "hello\n" && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void run_exec(const Options& o, Outcome& out) {
  Connection c(o.target);
  const std::string path = kSandboxes + "/" + o.id + "/exec";
  const auto begin = Clock::now();
  for (int i = -o.warmup; i < o.count; ++i) {
    const auto start = Clock::now();
    const Reply reply = c.request("POST", path, R"({"args":["/bin/echo","hello"]})");
    const double took = ms_since(start);
    double direct = 0;
    const bool spawned = spawn_echo(&direct);
    if (reply.status != 200 || reply.body.find("hello\\n") == std::string::npos) {
      out.error(describe("exec", reply));
    } else if (!spawned) {
      out.error("the direct spawn failed");
    } else if (i >= 0) {
      out.samples.push_back(took);
      out.second.push_back(direct);
    }
  }
  out.elapsed_s = ms_since(begin) / 1000;
}

void run_http(const Options& o, Outcome& out) {
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(o.seconds);
  for (int t = 0; t < o.parallel; ++t) {
    threads.emplace_back([&] {
      Connection c(o.target);
      std::vector<double> mine;
      std::uint64_t bytes = 0;
      for (int i = -o.warmup; o.seconds > 0 ? Clock::now() < end : i < o.count; ++i) {
        const auto begin = Clock::now();
        const Reply reply = c.request("GET", o.path, {}, [](std::string_view) {});
        if (reply.status != 200) {
          out.error(describe("GET", reply));
          if (reply.status == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          continue;
        }
        if (i < 0 && o.seconds <= 0) continue;
        mine.push_back(ms_since(begin));
        bytes += reply.body_bytes;
      }
      const std::lock_guard lock(out.mutex);
      out.samples.insert(out.samples.end(), mine.begin(), mine.end());
      out.bytes += bytes;
    });
  }
  for (std::thread& t : threads) t.join();
  out.elapsed_s = ms_since(start) / 1000;
}

void run_body(const Options& o, Outcome& out) {
  Connection c(o.target);
  const std::string block(1 << 20, 'x');
  const auto start = Clock::now();
  const Reply reply = o.mode == "put" ? c.upload("PUT", o.path, block, o.size)
                                      : c.request("GET", o.path, {}, [](std::string_view) {});
  const double took = ms_since(start);
  if (reply.status != 200 && reply.status != 201) {
    out.error(describe(o.mode.c_str(), reply));
  } else if (o.mode == "get" && reply.body_bytes != o.size) {
    out.error("got " + std::to_string(reply.body_bytes) + " bytes");
  } else {
    out.samples.push_back(took);
  }
  out.bytes = o.mode == "put" ? o.size : reply.body_bytes;
  out.elapsed_s = took / 1000;
}

void print_list(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%.4f", i == 0 ? "" : ",", values[i]);
  }
  std::printf("]");
}

void print(const Outcome& out) {
  std::printf("{");
  print_list("samples_ms", out.samples);
  std::printf(",");
  print_list("direct_ms", out.second);
  std::printf(",\"kept\":[");
  for (std::size_t i = 0; i < out.kept.size(); ++i) {
    std::printf("%s\"%s\"", i == 0 ? "" : ",", out.kept[i].c_str());
  }
  std::printf("],\"errors\":%d,\"first_error\":\"%s\",\"bytes\":%llu,\"elapsed_s\":%.4f}\n",
              out.errors, out.first_error.c_str(), static_cast<unsigned long long>(out.bytes),
              out.elapsed_s);
}

bool parse(int argc, char** argv, Options& o) {
  if (argc < 2) return false;
  o.mode = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--keep") {
      o.keep = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const std::string value = argv[++i];
    if (flag == "--tcp") {
      const std::size_t colon = value.rfind(':');
      o.target.host = value.substr(0, colon);
      o.target.port = static_cast<std::uint16_t>(std::atoi(value.c_str() + colon + 1));
    } else if (flag == "--unix") {
      o.target.unix_path = value;
    } else if (flag == "--header") {
      o.target.headers += value + "\r\n";
    } else if (flag == "--count") {
      o.count = std::atoi(value.c_str());
    } else if (flag == "--parallel") {
      o.parallel = std::atoi(value.c_str());
    } else if (flag == "--warmup") {
      o.warmup = std::atoi(value.c_str());
    } else if (flag == "--seconds") {
      o.seconds = std::atof(value.c_str());
    } else if (flag == "--size") {
      o.size = std::strtoull(value.c_str(), nullptr, 10);
    } else if (flag == "--id") {
      o.id = value;
    } else if (flag == "--path") {
      o.path = value;
    } else if (flag == "--body") {
      o.body = value;
    } else {
      return false;
    }
  }
  return o.parallel > 0;
}

}  // namespace
}  // namespace glovebox::bench

int main(int argc, char** argv) {
  using namespace glovebox::bench;  // NOLINT(google-build-using-namespace)
  Options o;
  if (!parse(argc, argv, o)) {
    std::fputs("usage: glovebox-bench create|cycle|exec|http|put|get [flags], see load.cc\n",
               stderr);
    return 2;
  }
  Outcome out;
  if (o.mode == "create") {
    run_create(o, true, out);
  } else if (o.mode == "cycle") {
    run_create(o, false, out);
  } else if (o.mode == "exec") {
    run_exec(o, out);
  } else if (o.mode == "http") {
    run_http(o, out);
  } else if (o.mode == "put" || o.mode == "get") {
    run_body(o, out);
  } else {
    return 2;
  }
  print(out);
  return 0;
}
