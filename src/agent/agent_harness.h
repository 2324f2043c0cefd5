// For tests: an agent in a child process with a scratch directory and, where the host has cgroup
// version 2, a cgroup of its own; and a blocking HTTP client that can be as rude as a test needs.

#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/agent.h"
#include "base/base64.h"
#include "base/unique_fd.h"

namespace glovebox::agent::harness {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // Names in lower case.
  std::string body;
  bool whole = false;  // False when the connection ended before the body did.
};

struct Event {
  std::string name;
  std::string data;
};

// One connection. Every read gives up after 30 s, so that no test hangs.
class Connection {
 public:
  explicit Connection(const std::string& socket_path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fd_.reset();
    }
  }

  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  bool send_request(const std::string& method, const std::string& target, const std::string& body,
                    const std::map<std::string, std::string>& headers = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: agent\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!body.empty() || method != "GET") {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return send(text + "\r\n") && send(body);
  }

  Reply read_head() {
    Reply reply;
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return reply;
    }
    std::istringstream lines(buffer_.substr(0, end + 2));
    buffer_.erase(0, end + 4);
    std::string line;
    std::getline(lines, line);
    if (line.size() > 12) reply.status = std::stoi(line.substr(9, 3));
    while (std::getline(lines, line)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      std::string name = line.substr(0, colon);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      std::string value = line.substr(colon + 1);
      value.erase(0, value.find_first_not_of(' '));
      while (!value.empty() && value.back() == '\r') value.pop_back();
      reply.headers[name] = value;
    }
    return reply;
  }

  Reply read_reply(bool to_head = false) {
    Reply reply = read_head();
    if (reply.status == 100) reply = read_head();
    if (to_head || reply.status == 204 || reply.status == 304) {
      reply.whole = true;
    } else if (reply.headers["transfer-encoding"] == "chunked") {
      std::string chunk;
      while (read_chunk(chunk)) {
        if (chunk.empty()) {
          reply.whole = true;
          break;
        }
        reply.body += chunk;
      }
    } else {
      const std::size_t length = std::stoul("0" + reply.headers["content-length"]);
      while (buffer_.size() < length && fill()) {
      }
      reply.whole = buffer_.size() >= length;
      reply.body = buffer_.substr(0, length);
      buffer_.erase(0, std::min(length, buffer_.size()));
    }
    return reply;
  }

  // One piece of a chunked body; empty at its end. False when the connection ended.
  bool read_chunk(std::string& chunk) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!fill()) return false;
    }
    const std::size_t size = std::stoul(buffer_.substr(0, end), nullptr, 16);
    while (buffer_.size() < end + 2 + size + 2) {
      if (!fill()) return false;
    }
    chunk = buffer_.substr(end + 2, size);
    buffer_.erase(0, end + 2 + size + 2);
    return true;
  }

  // The next event of a stream; name "" at the end.
  Event next_event() {
    for (;;) {
      const std::size_t end = events_.find("\n\n");
      if (end != std::string::npos) {
        Event event;
        std::istringstream lines(events_.substr(0, end));
        events_.erase(0, end + 2);
        for (std::string line; std::getline(lines, line);) {
          if (line.starts_with("event: ")) event.name = line.substr(7);
          if (line.starts_with("data: ")) event.data = line.substr(6);
        }
        if (!event.name.empty()) return event;
        ++comments_;
        continue;
      }
      std::string chunk;
      if (!read_chunk(chunk) || chunk.empty()) return {};
      events_ += chunk;
    }
  }
  int comments() const { return comments_; }

 private:
  bool fill() {
    pollfd wait{fd_.get(), POLLIN, 0};
    if (::poll(&wait, 1, 30'000) != 1) return false;
    char bytes[65536];
    const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  UniqueFd fd_;
  std::string buffer_;
  std::string events_;
  int comments_ = 0;
};

// The value of a member in flat JSON text, without its quotes; escapes are left as they are.
inline std::string member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  std::size_t at = json.find(key);
  if (at == std::string::npos) return "<no " + name + " in " + json.substr(0, 400) + ">";
  at += key.size();
  if (json[at] != '"') return json.substr(at, json.find_first_of(",}]", at) - at);
  std::size_t end = at + 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return json.substr(at + 1, end - at - 1);
}

inline std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

inline std::string cgroup2_mount() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, path, type, rest; mounts >> device >> path >> type;) {
    std::getline(mounts, rest);
    if (type == "cgroup2") return path;
  }
  return {};
}

enum class Cgroups : bool { kNo, kYes };

class AgentProcess {
 public:
  explicit AgentProcess(Cgroups cgroups = Cgroups::kYes) {
    char name[] = "/tmp/glovebox_agent_test_XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    dir_ = name;
    ::chmod(name, 0755);
    if (cgroups == Cgroups::kYes) make_cgroup();
    start();
  }
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;
  ~AgentProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    if (!cgroup_.empty()) remove_cgroup();
    ::nftw(
        dir_.c_str(),
        [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); }, 16,
        FTW_DEPTH | FTW_PHYS);
  }

  const std::string& dir() const { return dir_; }
  const std::string& cgroup() const { return cgroup_; }
  pid_t pid() const { return pid_; }
  Connection connect() const { return Connection(dir_ + "/agent.sock"); }

  Reply call(const std::string& method, const std::string& target, const std::string& body = {},
             const std::map<std::string, std::string>& headers = {}) const {
    Connection connection = connect();
    connection.send_request(method, target, body, headers);
    return connection.read_reply(method == "HEAD");
  }

  // A shell line as root, in the scratch directory; `more` are further members.
  // The login shell must not read what the machine's own root has in its home.
  std::string request(std::string_view line, const std::string& more = {}) const {
    const bool own_env = more.find("\"env\"") != std::string::npos;
    const std::string home = own_env ? "" : R"(,"env":{"HOME":)" + quote(dir_) + "}";
    return R"({"cmd":)" + quote(line) + R"(,"user":"0","cwd":)" + quote(dir_) + home + more + "}";
  }
  Reply exec(std::string_view line, const std::string& more = {}) const {
    return call("POST", "/v1/exec", request(line, more));
  }
  // Starts it in the background and returns its pid.
  std::string start(std::string_view line, const std::string& more = {}) const {
    return member(exec(line, R"(,"background":true)" + more).body, "pid");
  }
  // A connection on which the events of a command come.
  Connection stream(std::string_view line, const std::string& more = {}) const {
    Connection connection = connect();
    connection.send_request("POST", "/v1/exec", request(line, more),
                            {{"Accept", "text/event-stream"}});
    connection.read_head();
    return connection;
  }
  Connection follow(const std::string& pid, const std::string& query = {}) const {
    Connection connection = connect();
    connection.send_request("GET", "/v1/processes/" + pid + "/output" + query, "");
    connection.read_head();
    return connection;
  }

 private:
  void make_cgroup() {
    const std::string mount = cgroup2_mount();
    if (mount.empty()) return;
    const std::string path = mount + "/glovebox-agent-test-" + std::to_string(::getpid());
    if (::mkdir(path.c_str(), 0755) == 0) cgroup_ = path;
  }
  void remove_cgroup() {
    std::ofstream(cgroup_ + "/cgroup.kill") << "1";
    for (int i = 0; i < 400; ++i) {
      ::nftw(
          cgroup_.c_str(),
          [](const char* path, const struct stat*, int type, FTW*) {
            return type == FTW_DP ? ::rmdir(path), 0 : 0;
          },
          8, FTW_DEPTH | FTW_PHYS);
      if (::access(cgroup_.c_str(), F_OK) != 0) return;
      ::usleep(5000);
    }
  }
  void start() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (dir_ + "/agent.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    AgentOptions options;
    options.listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(options.listener.get(), reinterpret_cast<const sockaddr*>(&address),
               sizeof address) != 0 ||
        ::listen(options.listener.get(), 512) != 0) {
      std::abort();
    }
    if (!cgroup_.empty()) {
      options.cgroup.reset(::open(cgroup_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    pid_ = ::fork();
    if (pid_ != 0) return;
    const Result<void> ended = run_agent(std::move(options));
    std::fprintf(stderr, "agent: %s\n", ended.error().text().c_str());
    ::_exit(1);
  }

  std::string dir_;
  std::string cgroup_;
  pid_t pid_ = 0;
};

// Waits for something to become true, at most 20 s.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace glovebox::agent::harness
