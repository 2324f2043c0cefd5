#include "agent/exec/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "os/sys.h"

namespace glovebox::agent {

Result<Pty> Pty::open(const User& user, WindowSize size) {
  Pty pty;
  GB_TRY_ASSIGN(pty.master, os::openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0,
                                       os::Resolve::kAnywhere));
  const int unlocked = 0;
  GB_TRY(os::retry("unlock", "/dev/ptmx",
                   [&] { return ::ioctl(pty.master.get(), TIOCSPTLCK, &unlocked); }));
  // By the master and not by name: /dev/pts may be another instance's.
  GB_TRY_ASSIGN(const int slave, os::retry("open the other end of", "/dev/ptmx", [&] {
                  return ::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
                }));
  pty.slave.reset(slave);
  GB_TRY(os::retry("chown", "terminal",
                   [&] { return ::fchown(pty.slave.get(), user.uid, static_cast<gid_t>(-1)); }));
  GB_TRY(os::retry("chmod", "terminal", [&] { return ::fchmod(pty.slave.get(), 0620); }));
  // Erase takes a whole character, not a byte of one.
  struct termios modes{};
  if (::tcgetattr(pty.slave.get(), &modes) == 0) {
    modes.c_iflag |= IUTF8;
    ::tcsetattr(pty.slave.get(), TCSANOW, &modes);
  }
  GB_TRY(resize_pty(pty.master.get(), size));
  return pty;
}

Result<void> resize_pty(int master_fd, WindowSize size) {
  struct winsize window{};
  window.ws_col = size.cols;
  window.ws_row = size.rows;
  GB_TRY(os::retry("resize", "terminal", [&] { return ::ioctl(master_fd, TIOCSWINSZ, &window); }));
  return {};
}

}  // namespace glovebox::agent
