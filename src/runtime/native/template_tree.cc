#include "runtime/native/template_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "os/files.h"
#include "runtime/native/template_image.h"

namespace glovebox::native {
namespace {

constexpr uid_t kUser = 1000;
constexpr const char* kLayerEtc = "lib/glovebox/etc";  // Below /usr.
constexpr off_t kCopiedFileBytesMax = 1 << 20;
constexpr int kCopiedDepthMax = 6;

struct Dir {
  const char* path;
  mode_t mode;
  uid_t owner = 0;
};
constexpr Dir kDirs[] = {
    {"root", 0755},
    {"usr", 0700},
    {"usr/upper", 0755},
    {"usr/work", 0755},
    {"dev", 0755},
    {"dev/pts", 0755},
    {"dev/shm", 01777},
    {"root/usr", 0755},
    {"root/dev", 0755},
    {"root/proc", 0555},
    {"root/sys", 0555},
    {"root/run", 0755},
    {"root/run/lock", 01777},
    {"root/tmp", 01777},
    {"root/root", 0700},
    {"root/home", 0755},
    {"root/home/user", 0755, kUser},
    {"root/etc", 0755},
    {"root/etc/ssl", 0755},
    {"root/opt", 0755},
    {"root/srv", 0755},
    {"root/mnt", 0755},
    {"root/media", 0755},
    {"root/var", 0755},
    {"root/var/tmp", 01777},
    {"root/var/log", 0755},
    {"root/var/cache", 0755},
    {"root/var/lib", 0755},
    {"root/var/spool", 0755},
    {"root/sys/devices", 0555},
    {"root/sys/devices/system", 0555},
    {"root/sys/devices/system/cpu", 0555},
};

struct Link {
  const char* path;
  const char* target;
};
constexpr Link kLinks[] = {
    {"dev/fd", "/proc/self/fd"},
    {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"},
    {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},
    {"root/var/run", "/run"},
    {"root/var/lock", "/run/lock"},
    {"root/etc/mtab", "/proc/self/mounts"},
    {"root/etc/os-release", "../usr/lib/os-release"},
};

struct Device {
  const char* path;
  unsigned major;
  unsigned minor;
};
// Documentation/admin-guide/devices.txt
constexpr Device kDevices[] = {
    {"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
    {"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0},
};

struct File {
  const char* path;
  const char* text;
};
constexpr File kFiles[] = {
    {"root/etc/passwd",
     "root:x:0:0:root:/root:/bin/bash\n"
     "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
     "user:x:1000:1000:user:/home/user:/bin/bash\n"
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"root/etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n"},
    {"root/etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost\n"},
    {"root/etc/hostname", "sandbox\n"},
    {"root/etc/resolv.conf", "# No name server: nothing leaves this sandbox.\n"},
    {"root/etc/nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
     "protocols: files\nservices: files\n"},
    {"root/etc/profile",
     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nexport PATH\n"},
    {"root/etc/shells", "/bin/sh\n/bin/bash\n"},
    {"root/etc/machine-id", ""},
    {"root/etc/fstab", ""},
    {"root/home/user/.profile", ""},
};

// Public configuration of programs under /usr. A name that is not there is skipped.
constexpr const char* kHostEtc[] = {
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "perl",
    "php",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
};

Result<void> own(const std::string& path, uid_t uid) {
  GB_TRY(os::retry("lchown", path, [&] { return ::lchown(path.c_str(), uid, uid); }));
  return {};
}

Result<void> copy_entry(const std::string& from, const std::string& to, int depth);

Result<void> copy_dir(const std::string& from, const std::string& to, int depth) {
  GB_TRY(os::mkdir_if_absent(AT_FDCWD, to, 0755));
  GB_TRY_ASSIGN(const std::vector<std::string> names, os::list_dir(AT_FDCWD, from));
  for (const std::string& name : names) {
    GB_TRY(copy_entry(from + "/" + name, to + "/" + name, depth + 1));
  }
  return {};
}

// Copies links, directories and small world-readable files; anything else is left out.
Result<void> copy_entry(const std::string& from, const std::string& to, int depth) {
  struct stat st;
  if (depth > kCopiedDepthMax || ::lstat(from.c_str(), &st) != 0) return {};
  if (S_ISDIR(st.st_mode)) return copy_dir(from, to, depth);
  if (S_ISLNK(st.st_mode)) {
    char target[4096];
    const ssize_t n = ::readlink(from.c_str(), target, sizeof target - 1);
    if (n <= 0) return {};
    target[n] = 0;
    GB_TRY(os::retry("symlink", to, [&] { return ::symlink(target, to.c_str()); }));
    return {};
  }
  if (!S_ISREG(st.st_mode) || (st.st_mode & 0004) == 0 || st.st_size > kCopiedFileBytesMax) {
    return {};
  }
  GB_TRY_ASSIGN(const std::string text, os::read_file(AT_FDCWD, from));
  return os::put_file(AT_FDCWD, to, text, st.st_mode & 0755);
}

// /bin, /sbin and /lib* as the host has them, which must be links into /usr.
Result<void> link_usr(const std::string& root) {
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const std::string host = std::string("/") + name;
    struct stat st;
    if (::lstat(host.c_str(), &st) != 0) continue;
    char target[256];
    const ssize_t n = ::readlink(host.c_str(), target, sizeof target - 1);
    if (n <= 0) {
      return Error(Errc::kUnavailable,
                   host + " is not a link into /usr: the host template needs a merged /usr");
    }
    target[n] = 0;
    const std::string link = root + "/" + name;
    GB_TRY(os::retry("symlink", link, [&] { return ::symlink(target, link.c_str()); }));
  }
  return {};
}

Result<void> cpu_lists(const std::string& root) {
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::string range = count > 1 ? "0-" + std::to_string(count - 1) + "\n" : "0\n";
  for (const char* name : {"online", "possible", "present"}) {
    GB_TRY(os::put_file(AT_FDCWD, root + "/sys/devices/system/cpu/" + name, range, 0444));
  }
  return {};
}

}  // namespace

Result<void> fill_template_tree(const std::string& mount) {
  const std::string at = mount + "/";
  for (const Dir& dir : kDirs) {
    const std::string path = at + dir.path;
    GB_TRY(os::mkdir_if_absent(AT_FDCWD, path, 0700));
    GB_TRY(own(path, dir.owner));
    GB_TRY(os::retry("chmod", path, [&] { return ::chmod(path.c_str(), dir.mode); }));
  }
  for (const Link& link : kLinks) {
    const std::string path = at + link.path;
    GB_TRY(os::retry("symlink", path, [&] { return ::symlink(link.target, path.c_str()); }));
  }
  for (const Device& device : kDevices) {
    const std::string path = at + device.path;
    GB_TRY(os::retry("mknod", path, [&] {
      return ::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(device.major, device.minor));
    }));
    GB_TRY(os::retry("chmod", path, [&] { return ::chmod(path.c_str(), 0666); }));
  }
  for (const File& file : kFiles) {
    GB_TRY(os::put_file(AT_FDCWD, at + file.path, file.text, 0644));
  }
  GB_TRY(own(at + "root/home/user/.profile", kUser));
  const std::string root = at + kImageRoot;
  GB_TRY(link_usr(root));
  GB_TRY(cpu_lists(root));
  for (const char* name : kHostEtc) {
    if (::access((std::string("/etc/") + name).c_str(), F_OK) != 0) continue;
    const std::string path = root + "/etc/" + name;
    const std::string target = std::string("/usr/") + kLayerEtc + "/" + name;
    GB_TRY(os::retry("symlink", path, [&] { return ::symlink(target.c_str(), path.c_str()); }));
  }
  return {};
}

Result<void> fill_usr_layer(const std::string& dir) {
  std::error_code error;
  std::filesystem::remove_all(dir, error);
  GB_TRY(os::make_dirs(dir + "/" + kLayerEtc + "/ssl", 0755));
  for (const char* name : kHostEtc) {
    GB_TRY(copy_entry(std::string("/etc/") + name, dir + "/" + kLayerEtc + "/" + name, 0));
  }
  return {};
}

}  // namespace glovebox::native
