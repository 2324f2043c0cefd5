// bench-origin PORT: an HTTP server that costs next to nothing, for what is measured in front of
// it. GET /ping answers "pong"; GET /N answers N bytes. One thread, epoll, keep-alive.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

namespace {

struct Client {
  std::string in;
  std::string head;
  std::size_t head_sent = 0;
  std::size_t body_left = 0;
  bool busy() const { return head_sent < head.size() || body_left > 0; }
};

const std::string kBlock(256 << 10, 'x');

// Sends what is due; false when the connection is over.
bool flush(int fd, Client& c) {
  while (c.busy()) {
    const bool head = c.head_sent < c.head.size();
    const char* data = head ? c.head.data() + c.head_sent : kBlock.data();
    const std::size_t size =
        head ? c.head.size() - c.head_sent : std::min(c.body_left, kBlock.size());
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN;
    if (head) {
      c.head_sent += static_cast<std::size_t>(n);
    } else {
      c.body_left -= static_cast<std::size_t>(n);
    }
  }
  return true;
}

void answer(Client& c) {
  const std::size_t end = c.in.find("\r\n\r\n");
  const std::size_t slash = c.in.find('/');
  const bool ping = c.in.compare(slash, 5, "/ping") == 0;
  const std::size_t size = ping ? 4 : std::strtoull(c.in.c_str() + slash + 1, nullptr, 10);
  c.head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(size) +
      "\r\n\r\n";
  c.head_sent = 0;
  c.body_left = size;
  if (size < 4096) {  // One packet.
    c.head += ping ? std::string("pong") : kBlock.substr(0, size);
    c.body_left = 0;
  }
  c.in.erase(0, end + 4);
}

bool serve(int fd, Client& c) {
  if (!flush(fd, c)) return false;
  if (c.busy()) return true;
  char chunk[16384];
  for (;;) {
    while (!c.busy() && c.in.find("\r\n\r\n") != std::string::npos) {
      answer(c);
      if (!flush(fd, c)) return false;
    }
    if (c.busy()) return true;
    const ssize_t n = ::recv(fd, chunk, sizeof chunk, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
    if (n < 0) return true;
    c.in.append(chunk, static_cast<std::size_t>(n));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  (void)::signal(SIGPIPE, SIG_IGN);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[1])));
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
  ::listen(listener, 1024);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener;
  ::epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  std::puts("listening");
  std::fflush(stdout);
  std::unordered_map<int, Client> clients;
  epoll_event events[64];
  for (;;) {
    const int count = ::epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0) continue;
        ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        event.events = EPOLLIN | EPOLLOUT | EPOLLET;
        event.data.fd = accepted;
        ::epoll_ctl(poll, EPOLL_CTL_ADD, accepted, &event);
        clients.emplace(accepted, Client{});
        continue;
      }
      if (!serve(fd, clients[fd])) {
        clients.erase(fd);
        ::close(fd);
      }
    }
  }
}
