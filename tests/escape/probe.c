// The attacker's toolbox, run inside a sandbox: each probe tries one thing that a sandbox must not
// allow and prints one line, "name OK" when it was possible, "name EPERM" (or another errno) when
// the kernel said no, "name SIGSYS" when the attempt was killed. The expectations are in
// test_escape.py: this program judges nothing. It knows no library but libc and runs static.
//
//   probe list | probe all | probe NAME... | probe attack NAME COUNT
//
// Every probe runs in a child of its own, so that neither a kill nor a half success changes the
// next one. "attack" uses up a resource, bounded by COUNT and by 20 s, and says how far it came.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// 0, or -1 with errno: what a probe returns. Positive results count as success.
typedef long (*Probe)(void);

static long fail(int error) {
  errno = error;
  return -1;
}

// ---- mounts ------------------------------------------------------------------------------------

static const char* scratch(void) {  // A directory of our own to mount on.
  static char path[64];
  if (!path[0]) {
    strcpy(path, "/tmp/probeXXXXXX");
    if (!mkdtemp(path)) strcpy(path, "/mnt");  // Empty, and there in every sandbox.
  }
  return path;
}

static long mount_tmpfs(void) { return mount("none", scratch(), "tmpfs", 0, ""); }
static long mount_proc(void) { return mount("none", scratch(), "proc", 0, ""); }
static long mount_sysfs(void) { return mount("none", scratch(), "sysfs", 0, ""); }
static long mount_cgroup2(void) { return mount("none", scratch(), "cgroup2", 0, ""); }
static long mount_cgroup1(void) { return mount("none", scratch(), "cgroup", 0, "pids"); }
static long mount_bind(void) { return mount("/", scratch(), NULL, MS_BIND | MS_REC, NULL); }
static long mount_remount_usr_rw(void) {
  return mount("none", "/usr", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long mount_overlay(void) {
  return mount("none", scratch(), "overlay", 0, "lowerdir=/usr:/etc");
}
static long mount_propagation(void) { return mount("none", "/", NULL, MS_SHARED | MS_REC, NULL); }
static long umount_proc(void) { return umount2("/proc", MNT_DETACH); }
static long umount_root(void) { return umount2("/", MNT_DETACH); }
// Taking a mask away from a masked path uncovers what is below it.
static long umount_mask(void) { return umount2("/proc/kcore", MNT_DETACH); }
static long new_fsopen(void) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long new_fspick(void) { return syscall(SYS_fspick, AT_FDCWD, "/", 0); }
static long new_open_tree(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* CLONE */); }
static long new_move_mount(void) {
  return syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, scratch(), 0);
}
static long new_mount_setattr(void) {
  struct {
    uint64_t set, clear, propagation, userns;
  } attr = {0, 1 /* RDONLY */, 0, 0};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &attr, sizeof attr);
}
static long do_pivot_root(void) { return syscall(SYS_pivot_root, ".", "."); }
static long do_chroot(void) { return chroot("/tmp"); }

// The classic way out of a chroot: a second chroot below, with a descriptor kept above it.
static long chroot_escape(void) {
  int above = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above < 0) return -1;
  if (chroot(scratch()) < 0) return -1;
  if (fchdir(above) < 0) return -1;
  for (int i = 0; i < 64; i++)
    if (chdir("..") < 0) return -1;
  if (chroot(".") < 0) return -1;
  // Out only if this shows another tree than the one that we started in.
  struct stat before, after;
  if (fstat(above, &before) < 0 || stat("/", &after) < 0) return -1;
  if (before.st_dev == after.st_dev && before.st_ino == after.st_ino) return fail(EXDEV);
  return 0;
}

// ---- namespaces --------------------------------------------------------------------------------

#define UNSHARE(name, flag) \
  static long unshare_##name(void) { return unshare(flag); }
UNSHARE(user, CLONE_NEWUSER)
UNSHARE(mnt, CLONE_NEWNS)
UNSHARE(pid, CLONE_NEWPID)
UNSHARE(net, CLONE_NEWNET)
UNSHARE(ipc, CLONE_NEWIPC)
UNSHARE(uts, CLONE_NEWUTS)
UNSHARE(cgroup, CLONE_NEWCGROUP)
UNSHARE(time, CLONE_NEWTIME)

static long reap(pid_t pid) {
  int status;
  if (pid > 0) waitpid(pid, &status, __WALL);
  return pid;
}
static long raw_clone(unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return reap(pid);
}
static long clone_newuser(void) { return raw_clone(CLONE_NEWUSER); }
static long clone_newuser_all(void) {
  return raw_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET);
}
static long clone_newns(void) { return raw_clone(CLONE_NEWNS); }
static long clone_newnet(void) { return raw_clone(CLONE_NEWNET); }
static long clone_newpid(void) { return raw_clone(CLONE_NEWPID); }
static long clone3_newuser(void) {
  struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) _exit(0);
  return reap(pid);
}
static long setns_path(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  return setns(fd, 0);
}
static long setns_own_user(void) { return setns_path("/proc/self/ns/user"); }
static long setns_own_mnt(void) { return setns_path("/proc/self/ns/mnt"); }
static long setns_init_mnt(void) { return setns_path("/proc/1/ns/mnt"); }
static long setns_init_net(void) { return setns_path("/proc/1/ns/net"); }
static long setns_pidfd_init(void) {
  int fd = syscall(SYS_pidfd_open, 1, 0);
  if (fd < 0) return -1;
  return setns(fd, CLONE_NEWNS | CLONE_NEWNET);
}
// OK when we are in the namespace that the test's own process is in: PROBE_NS_kind has its name.
static long in_host(const char* kind) {
  char path[64], variable[64], own[128] = "";
  snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
  snprintf(variable, sizeof variable, "PROBE_NS_%s", kind);
  const char* host = getenv(variable);
  if (!host) return fail(EINVAL);
  if (readlink(path, own, sizeof own - 1) < 0) return -1;
  return strcmp(own, host) == 0 ? 1 : fail(EXDEV);
}
static long host_ns_pid(void) { return in_host("pid"); }
static long host_ns_net(void) { return in_host("net"); }
static long host_ns_ipc(void) { return in_host("ipc"); }
static long host_ns_user(void) { return in_host("user"); }
static long host_ns_mnt(void) { return in_host("mnt"); }
static long host_ns_uts(void) { return in_host("uts"); }
static long host_ns_cgroup(void) { return in_host("cgroup"); }

// ---- other processes ---------------------------------------------------------------------------

static long ptrace_init(void) { return ptrace(PTRACE_SEIZE, 1, 0, 0); }
static long vm_readv_init(void) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {(void*)0x400000, 1};
  return syscall(SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0);
}
static long vm_writev_init(void) {
  char byte = 0;
  struct iovec local = {&byte, 1}, remote = {(void*)0x400000, 1};
  return syscall(SYS_process_vm_writev, 1, &local, 1, &remote, 1, 0);
}
static long open_ro(const char* path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }
static long open_rw(const char* path) { return open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK); }
static long read_of(const char* path) {  // OK only when at least a byte came out.
  char buffer[64];
  int fd = open_ro(path);
  if (fd < 0) return -1;
  ssize_t n = read(fd, buffer, sizeof buffer);
  if (n == 0) return fail(ENODATA);
  return n;
}
static long init_mem(void) { return open("/proc/1/mem", O_RDWR | O_CLOEXEC); }
static long init_environ(void) { return read_of("/proc/1/environ"); }
static long init_maps(void) { return read_of("/proc/1/maps"); }
static long init_root(void) {
  struct stat st;
  return stat("/proc/1/root/", &st);
}
static long init_fd(void) {  // Where one of its descriptors leads.
  char link[256];
  return readlink("/proc/1/fd/3", link, sizeof link);
}
static long pidfd_getfd_init(void) {
  int fd = syscall(SYS_pidfd_open, 1, 0);
  if (fd < 0) return -1;
  return syscall(SYS_pidfd_getfd, fd, 0, 0);
}
static long kcmp_init(void) { return syscall(SYS_kcmp, getpid(), 1, 0 /* KCMP_FILE */, 0, 0); }
static long migrate_init(void) {
  unsigned long from = 1, to = 1;
  return syscall(SYS_migrate_pages, 1, 2, &from, &to);
}

static long child_of_two(void) {  // Tracing one's own child: debuggers may or may not work.
  pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  long result = ptrace(PTRACE_SEIZE, pid, 0, 0);
  int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  errno = error;
  return result;
}

// ---- the kernel --------------------------------------------------------------------------------

static long init_module(void) { return syscall(SYS_init_module, "", 0UL, ""); }
static long finit_module(void) { return syscall(SYS_finit_module, -1, "", 0); }
static long delete_module(void) { return syscall(SYS_delete_module, "nothere", 0); }
static long kexec_load(void) { return syscall(SYS_kexec_load, 0UL, 0UL, NULL, 0UL); }
static long kexec_file_load(void) { return syscall(SYS_kexec_file_load, -1, -1, 0UL, "", 0UL); }
static long bpf_map(void) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = 4;
  attr.value_size = 4;
  attr.max_entries = 1;
  return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}
static long perf_event(void) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.exclude_kernel = 1;
  return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL);
}
static long io_uring(void) {
  struct io_uring_params params;
  memset(&params, 0, sizeof params);
  return syscall(SYS_io_uring_setup, 4, &params);
}
static long do_userfaultfd(void) { return syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY); }
static long key_add(void) {
  return syscall(SYS_add_key, "user", "probe", "x", 1UL, KEY_SPEC_PROCESS_KEYRING);
}
static long key_request(void) { return syscall(SYS_request_key, "user", "probe", NULL, 0); }
static long key_ctl(void) { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -1 /* thread */, 1); }
static long handle_open(void) {
  struct {
    struct file_handle handle;
    char bytes[64];
  } h;
  memset(&h, 0, sizeof h);
  h.handle.handle_bytes = 8;
  h.handle.handle_type = 1;  // FILEID_INO32_GEN of inode 2: the root of an ext4.
  ((uint32_t*)h.handle.f_handle)[0] = 2;
  int at = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return syscall(SYS_open_by_handle_at, at, &h.handle, O_RDONLY);
}
static long handle_name(void) {
  struct {
    struct file_handle handle;
    char bytes[128];
  } h;
  memset(&h, 0, sizeof h);
  h.handle.handle_bytes = 128;
  int mount_id;
  return syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &h.handle, &mount_id, 0);
}
static long swap_on(void) { return syscall(SYS_swapon, "/tmp/none", 0); }
static long do_reboot(void) {  // CAD_OFF: without effect on anything when it is allowed here.
  return syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL);
}
static long do_acct(void) { return syscall(SYS_acct, NULL); }
static long do_syslog(void) {
  char buffer[256];
  return syscall(SYS_syslog, 3 /* READ_ALL */, buffer, (int)sizeof buffer);
}
static long set_time(void) {  // An impossible time: refused even where setting is allowed.
  struct timespec t = {0, 2000000000};
  return syscall(SYS_clock_settime, CLOCK_REALTIME, &t);
}
static long adjust_time(void) {
  // struct timex with modes = ADJ_OFFSET_SINGLESHOT | ADJ_ADJTIME, offset 0.
  char timex[208] = {0};
  *(unsigned*)timex = 0x8001;
  return syscall(SYS_adjtimex, timex);
}
static long set_hostname(void) { return sethostname("probe", 5); }
static long do_personality(void) {  // READ_IMPLIES_EXEC weakens every later mapping.
  return personality(READ_IMPLIES_EXEC);
}
static long do_iopl(void) { return syscall(SYS_iopl, 3); }
static long do_ioperm(void) { return syscall(SYS_ioperm, 0x80, 1, 1); }
static long modify_ldt(void) {
  char ldt[16];
  return syscall(SYS_modify_ldt, 0, ldt, sizeof ldt);
}
static long do_quotactl(void) { return syscall(SYS_quotactl, 0x800001 << 8, NULL, 0, NULL); }
static long do_fanotify(void) { return syscall(SYS_fanotify_init, 0, O_RDONLY); }
static long do_lookup_dcookie(void) { return syscall(SYS_lookup_dcookie, 0UL, NULL, 0UL); }
static long do_vhangup(void) { return syscall(SYS_vhangup); }
static long do_memfd_secret(void) { return syscall(SYS_memfd_secret, 0); }
static long do_x32(void) { return syscall(0x40000000 | SYS_getpid); }
static long do_int80(void) {  // getpid by the 32-bit door, whose numbers a filter may not know.
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  return result < 0 ? fail(-result) : result;
}
static long no_such_syscall(void) { return syscall(4000); }

// ---- privileges --------------------------------------------------------------------------------

static long caps_any(void) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &head, data) < 0) return -1;
  return data[0].permitted | data[1].permitted ? 1 : fail(EPERM);
}
static long cap_bound(int cap) {
  int is = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
  return is > 0 ? 1 : fail(EPERM);
}
static long bound_sys_admin(void) { return cap_bound(CAP_SYS_ADMIN); }
static long bound_sys_ptrace(void) { return cap_bound(CAP_SYS_PTRACE); }
static long bound_net_admin(void) { return cap_bound(CAP_NET_ADMIN); }
static long bound_mknod(void) { return cap_bound(CAP_MKNOD); }
static long new_privs(void) {  // OK when a set-uid program would still gain rights.
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 1 : fail(EPERM);
}
static long no_filter(void) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ? 1 : fail(EPERM); }
static long uid_is_host_root(void) {  // OK when id 0 here is id 0 of the parent namespace.
  unsigned inside, outside, count;
  FILE* f = fopen("/proc/self/uid_map", "re");
  if (!f) return -1;
  while (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
    if (outside < 0x10000) return 1;
  return fail(EPERM);
}
static long lower_oom(void) {  // Makes itself the last to be killed.
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  return write(fd, "-1000", 5);
}
static long raise_nofile(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -1;
  limit.rlim_max += 1;
  return setrlimit(RLIMIT_NOFILE, &limit);
}
static long realtime(void) {
  struct sched_param p = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &p);
}
static long nice_up(void) { return setpriority(PRIO_PROCESS, 0, -5); }

// ---- devices and terminals ---------------------------------------------------------------------

static long make_node(mode_t type, unsigned major_no, unsigned minor_no) {
  char path[128];
  snprintf(path, sizeof path, "%s/node", scratch());
  unlink(path);
  if (mknod(path, type | 0666, makedev(major_no, minor_no)) < 0) return -1;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  int error = errno;
  unlink(path);
  return fd < 0 ? fail(error) : fd;
}
static long mknod_mem(void) { return make_node(S_IFCHR, 1, 1); }
static long mknod_kmsg(void) { return make_node(S_IFCHR, 1, 11); }
static long mknod_sda(void) { return make_node(S_IFBLK, 8, 0); }
static long mknod_vda(void) { return make_node(S_IFBLK, 254, 0); }
static long mknod_loop(void) { return make_node(S_IFBLK, 7, 0); }
static long open_mem(void) { return open_ro("/dev/mem"); }
static long open_kmsg(void) { return open_ro("/dev/kmsg"); }
static long open_kvm(void) { return open_ro("/dev/kvm"); }
static long open_loopctl(void) { return open_ro("/dev/loop-control"); }
static long open_fuse(void) { return open_ro("/dev/fuse"); }
static long open_tun(void) { return open_ro("/dev/net/tun"); }
static long open_console(void) { return open_ro("/dev/console"); }

static int own_tty(void) {  // A PTY of our own as controlling terminal.
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) return -1;
  int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return -1;
  setsid();
  ioctl(slave, TIOCSCTTY, 0);
  return slave;
}
static long tiocsti(void) {
  int tty = own_tty();
  if (tty < 0) return -1;
  return ioctl(tty, TIOCSTI, "x");
}
static long tiocsti_high_bits(void) {  // CVE-2019-10063: the kernel looks at 32 bits only.
  int tty = own_tty();
  if (tty < 0) return -1;
  return syscall(SYS_ioctl, tty, (unsigned long)TIOCSTI | (1UL << 32), "x");
}
static long tioclinux(void) {
  int tty = own_tty();
  char sub = 2;
  if (tty < 0) return -1;
  return ioctl(tty, TIOCLINUX, &sub);
}

// ---- files of the host -------------------------------------------------------------------------

#define READ(name, path) \
  static long name(void) { return read_of(path); }
#define WRITE(name, path) \
  static long name(void) { return open_rw(path); }
#define LOOK(name, path)    \
  static long name(void) {  \
    struct stat st;         \
    return stat(path, &st); \
  }
READ(read_shadow, "/etc/shadow")
READ(read_gshadow, "/etc/gshadow")
READ(read_sudoers, "/etc/sudoers")
READ(read_machine_id, "/etc/machine-id")
LOOK(see_ssh_keys, "/etc/ssh")
LOOK(see_root_ssh, "/root/.ssh")
LOOK(see_root_profile, "/root/.bashrc")
LOOK(see_var_lib, "/var/lib/dpkg")
LOOK(see_var_log, "/var/log/dpkg.log")
LOOK(see_docker_sock, "/run/docker.sock")
LOOK(see_dbus, "/run/dbus")
LOOK(see_systemd, "/run/systemd")
LOOK(see_boot, "/boot/grub")
WRITE(write_usr, "/usr/bin/env")
WRITE(write_core_pattern, "/proc/sys/kernel/core_pattern")
WRITE(write_modprobe, "/proc/sys/kernel/modprobe")
WRITE(write_hotplug, "/proc/sys/kernel/hotplug")
WRITE(write_uevent_helper, "/sys/kernel/uevent_helper")
WRITE(write_sysrq, "/proc/sysrq-trigger")
WRITE(write_panic, "/proc/sys/kernel/panic")
WRITE(write_vm, "/proc/sys/vm/overcommit_memory")
WRITE(write_binfmt, "/proc/sys/fs/binfmt_misc/register")
WRITE(write_cpuset, "/sys/fs/cgroup/cpuset/cpuset.cpus")
WRITE(write_release_agent, "/sys/fs/cgroup/memory/release_agent")
READ(read_kcore, "/proc/kcore")
READ(read_kallsyms, "/proc/kallsyms")
READ(read_kmsg, "/proc/kmsg")
READ(read_keys, "/proc/keys")
READ(read_timer_list, "/proc/timer_list")
READ(read_sched_debug, "/proc/sched_debug")
READ(read_iomem, "/proc/iomem")
READ(read_kpagecount, "/proc/kpagecount")
READ(read_config, "/proc/config.gz")
READ(read_cmdline, "/proc/cmdline")
READ(read_partitions, "/proc/partitions")
READ(read_diskstats, "/proc/diskstats")

// A masked directory is there, and empty.
static long entries_of(const char* path) {
  DIR* dir = opendir(path);
  if (!dir) return -1;
  long count = 0;
  while (readdir(dir)) count++;
  return count > 2 ? count : fail(ENODATA);
}
#define INTO(name, path) \
  static long name(void) { return entries_of(path); }
INTO(into_acpi, "/proc/acpi")
INTO(into_scsi, "/proc/scsi")
INTO(into_irq, "/proc/irq")
INTO(into_bus, "/proc/bus")
INTO(into_fs, "/proc/fs")
INTO(into_sys_cgroup, "/sys/fs/cgroup")
INTO(into_sys_block, "/sys/block")
INTO(into_sys_firmware, "/sys/firmware")
INTO(into_sys_debug, "/sys/kernel/debug")
INTO(into_sys_module, "/sys/module")
INTO(into_root, "/root")
INTO(into_var_lib, "/var/lib")
INTO(into_srv, "/srv")
INTO(into_opt, "/opt")
INTO(into_mnt, "/mnt")
INTO(into_media, "/media")

static long write_root_dir(void) {  // A directory outside what is promised to be writable.
  int fd = open("/usr/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) unlink("/usr/probe");
  return fd;
}
static long setuid_bit(void) {  // OK when a set-uid root program exists that we could run.
  static const char* const paths[] = {"/usr/bin/su",     "/usr/bin/sudo", "/usr/bin/mount",
                                      "/usr/bin/passwd", "/usr/bin/chfn", "/usr/bin/newgrp",
                                      "/usr/bin/umount", "/usr/bin/chsh"};
  struct stat st;
  int seen = 0;
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (stat(paths[i], &st) == 0 && st.st_uid == 0 && (st.st_mode & S_ISUID)) seen++;
  return seen ? seen : fail(ENOENT);
}
static long stray_fd(void) {  // A descriptor above 2 that we did not open.
  for (int fd = 3; fd < 1024; fd++)
    if (fcntl(fd, F_GETFD) >= 0) return 1;
  return fail(EBADF);
}
static long fd_above_root(void) {  // A directory descriptor that leads to another root.
  struct stat root, st;
  if (stat("/", &root) < 0) return -1;
  for (int fd = 0; fd < 1024; fd++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/../../../../../../..", fd);
    if (stat(path, &st) == 0 && (st.st_dev != root.st_dev || st.st_ino != root.st_ino)) return 1;
  }
  return fail(ENOENT);
}

// ---- network -----------------------------------------------------------------------------------

static long dial(const char* text, uint16_t port) {
  struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, text, &addr.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr*)&addr, sizeof addr) == 0) return 1;
  if (errno != EINPROGRESS) return -1;
  struct pollfd p = {fd, POLLOUT, 0};
  if (poll(&p, 1, 700) <= 0) return fail(ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error ? fail(error) : 1;
}
static long dial_world(void) { return dial("192.0.2.1", 80); }
static long dial_metadata(void) { return dial("169.254.169.254", 80); }
static long dial_private(void) { return dial("10.0.0.1", 53); }
static long udp_world(void) {
  struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(53)};
  inet_pton(AF_INET, "192.0.2.53", &addr.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  return sendto(fd, "x", 1, 0, (struct sockaddr*)&addr, sizeof addr);
}
static long udp6_world(void) {
  struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
  inet_pton(AF_INET6, "2001:db8::1", &addr.sin6_addr);
  int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  return sendto(fd, "x", 1, 0, (struct sockaddr*)&addr, sizeof addr);
}
static long other_interface(void) {  // OK when an interface beyond loopback exists.
  struct if_nameindex* all = if_nameindex();
  if (!all) return -1;
  int others = 0;
  for (struct if_nameindex* i = all; i->if_index; i++)
    if (strcmp(i->if_name, "lo") != 0) others++;
  return others ? others : fail(ENODEV);
}
static long raw_socket(void) { return socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP); }
static long packet_socket(void) { return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(3)); }
static long vsock(void) { return socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static long alg_socket(void) { return socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }
static long netlink_netfilter(void) {
  return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 12 /* NETFILTER */);
}
static long xdp_socket(void) { return socket(44 /* AF_XDP */, SOCK_RAW | SOCK_CLOEXEC, 0); }

// The listener's name, without its leading NUL, comes in the environment from the test, which
// holds it open in the host's network namespace.
static long abstract_host(void) {
  const char* name = getenv("PROBE_ABSTRACT");
  if (!name) return fail(EINVAL);
  struct sockaddr_un addr = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  if (length > sizeof addr.sun_path - 1) return fail(EINVAL);
  memcpy(addr.sun_path + 1, name, length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(fd, (struct sockaddr*)&addr, offsetof(struct sockaddr_un, sun_path) + 1 + length);
}
static long port_host(void) {  // A TCP port that listens on the host's loopback.
  const char* port = getenv("PROBE_PORT");
  if (!port) return fail(EINVAL);
  return dial("127.0.0.1", (uint16_t)atoi(port));
}
static long file_host(void) {  // A file that the test made on the host.
  const char* path = getenv("PROBE_FILE");
  return path ? read_of(path) : fail(EINVAL);
}
static long pid_host(void) {  // A process that the test runs on the host.
  const char* pid = getenv("PROBE_PID");
  return pid ? kill(atoi(pid), 0) : fail(EINVAL);
}
static long shm_host(void) {  // A System V segment that the test made on the host.
  const char* key = getenv("PROBE_SHM");
  return key ? syscall(SYS_shmget, (int)strtol(key, NULL, 0), 0UL, 0) : fail(EINVAL);
}

// ---- table -------------------------------------------------------------------------------------

#define P(name) {#name, name}
static const struct {
  const char* name;
  Probe run;
} kProbes[] = {
    // clang-format off
    P(mount_tmpfs), P(mount_proc), P(mount_sysfs), P(mount_cgroup2), P(mount_cgroup1),
    P(mount_bind), P(mount_remount_usr_rw), P(mount_overlay), P(mount_propagation), P(umount_proc),
    P(umount_root), P(umount_mask), P(new_fsopen), P(new_fspick), P(new_open_tree),
    P(new_move_mount), P(new_mount_setattr), P(do_pivot_root), P(do_chroot), P(chroot_escape),
    P(unshare_user), P(unshare_mnt), P(unshare_pid), P(unshare_net), P(unshare_ipc), P(unshare_uts),
    P(unshare_cgroup), P(unshare_time), P(clone_newuser), P(clone_newuser_all), P(clone_newns),
    P(clone_newnet), P(clone_newpid), P(clone3_newuser), P(setns_own_user), P(setns_own_mnt),
    P(setns_init_mnt), P(setns_init_net), P(setns_pidfd_init), P(host_ns_pid), P(host_ns_net),
    P(host_ns_ipc), P(host_ns_user), P(host_ns_mnt), P(host_ns_uts), P(host_ns_cgroup),
    P(ptrace_init), P(vm_readv_init), P(vm_writev_init), P(init_mem), P(init_environ), P(init_maps),
    P(init_root), P(init_fd), P(pidfd_getfd_init), P(kcmp_init), P(migrate_init),
    P(child_of_two), P(init_module), P(finit_module), P(delete_module), P(kexec_load),
    P(kexec_file_load), P(bpf_map), P(perf_event), P(io_uring), P(do_userfaultfd), P(key_add),
    P(key_request), P(key_ctl), P(handle_open), P(handle_name), P(swap_on), P(do_reboot),
    P(do_acct), P(do_syslog), P(set_time), P(adjust_time), P(set_hostname), P(do_personality),
    P(do_iopl), P(do_ioperm), P(modify_ldt), P(do_quotactl), P(do_fanotify), P(do_lookup_dcookie),
    P(do_vhangup), P(do_memfd_secret), P(do_x32), P(do_int80), P(no_such_syscall), P(caps_any),
    P(bound_sys_admin), P(bound_sys_ptrace), P(bound_net_admin), P(bound_mknod), P(new_privs),
    P(no_filter), P(uid_is_host_root), P(lower_oom), P(raise_nofile), P(realtime), P(nice_up),
    P(mknod_mem), P(mknod_kmsg), P(mknod_sda), P(mknod_vda), P(mknod_loop), P(open_mem),
    P(open_kmsg), P(open_kvm), P(open_loopctl), P(open_fuse), P(open_tun), P(open_console),
    P(tiocsti), P(tiocsti_high_bits), P(tioclinux), P(read_shadow), P(read_gshadow),
    P(read_sudoers), P(read_machine_id), P(see_ssh_keys), P(see_root_ssh), P(see_root_profile),
    P(see_var_lib), P(see_var_log), P(see_docker_sock), P(see_dbus), P(see_systemd), P(see_boot),
    P(into_srv), P(into_acpi), P(into_scsi), P(into_irq), P(into_bus), P(into_fs),
    P(into_sys_cgroup), P(into_sys_block), P(into_sys_firmware), P(into_sys_debug),
    P(into_sys_module), P(into_root), P(into_var_lib), P(into_opt), P(into_mnt), P(into_media),
    P(write_usr), P(write_core_pattern), P(write_modprobe), P(write_hotplug),
    P(write_uevent_helper), P(write_sysrq), P(write_panic), P(write_vm), P(write_binfmt),
    P(write_cpuset), P(write_release_agent), P(read_kcore), P(read_kallsyms), P(read_kmsg),
    P(read_keys), P(read_timer_list), P(read_sched_debug), P(read_iomem), P(read_kpagecount),
    P(read_config), P(read_cmdline), P(read_partitions), P(read_diskstats), P(write_root_dir), P(setuid_bit), P(stray_fd), P(fd_above_root), P(dial_world),
    P(dial_metadata), P(dial_private), P(udp_world), P(udp6_world), P(other_interface),
    P(raw_socket), P(packet_socket), P(vsock), P(alg_socket), P(netlink_netfilter), P(xdp_socket),
    P(abstract_host), P(port_host), P(file_host), P(pid_host), P(shm_host),
    // clang-format on
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_probe(const char* name, Probe probe) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) {
    printf("%s fork-failed\n", name);
    return;
  }
  if (pid == 0) {
    alarm(10);
    long result = probe();
    int error = errno;
    if (result >= 0)
      printf("%s OK\n", name);
    else
      printf("%s %s\n", name, strerrorname_np(error) ? strerrorname_np(error) : "?");
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
}

// ---- attacks -----------------------------------------------------------------------------------
// Each returns how many steps were granted, and sets errno to what stopped it (0: its own bound).

static time_t started;
static int over(void) { return time(NULL) - started > 20; }

static long fork_bomb(long count) {  // Children end by themselves after 15 s.
  long made = 0;
  for (; made < count && !over(); made++) {
    pid_t pid = fork();
    if (pid < 0) return made;
    if (pid == 0) {
      alarm(15);
      for (;;) pause();
    }
  }
  errno = 0;
  return made;
}
static long zombies(long count) {
  long made = 0;
  for (; made < count && !over(); made++) {
    pid_t pid = fork();
    if (pid < 0) return made;
    if (pid == 0) _exit(0);
  }
  errno = 0;
  return made;
}
static long orphans(long count) {  // Double-forked: process 1 inherits and must reap them.
  long made = 0;
  for (; made < count && !over(); made++) {
    pid_t pid = fork();
    if (pid < 0) return made;
    if (pid == 0) {
      if (fork() == 0) _exit(0);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
  }
  errno = 0;
  return made;
}
static long memory(long mib) {  // Touched, so that it counts. Killed when a limit is there.
  for (long i = 0; i < mib && !over(); i++) {
    char* p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return i;
    for (long at = 0; at < 1 << 20; at += 4096) p[at] = 1;
    if (i % 16 == 0) {
      printf("at %ld\n", i);
      fflush(stdout);
    }
  }
  errno = 0;
  return mib;
}
static long fill(const char* path, long mib) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  static char block[1 << 20];
  memset(block, 'x', sizeof block);
  long done = 0;
  int error = 0;
  for (; done < mib && !over(); done++) {
    ssize_t n = write(fd, block, sizeof block);
    if (n != (ssize_t)sizeof block) {
      error = n < 0 ? errno : ENOSPC;
      break;
    }
  }
  close(fd);
  unlink(path);
  errno = error;
  return done;
}
static long disk(long mib) { return fill("fill.probe", mib); }
static long tmp(long mib) { return fill("/tmp/fill.probe", mib); }
static long shm(long mib) { return fill("/dev/shm/fill.probe", mib); }
static long memfd(long mib) {
  int fd = memfd_create("probe", MFD_CLOEXEC);
  static char block[1 << 20];
  memset(block, 'x', sizeof block);
  for (long i = 0; i < mib && !over(); i++)
    if (write(fd, block, sizeof block) < 0) return i;
  errno = 0;
  return mib;
}
static long fds(long count) {
  long made = 0;
  for (; made < count && !over(); made++)
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) return made;
  errno = 0;
  return made;
}
static long inotify(long count) {
  long made = 0;
  for (; made < count && !over(); made++)
    if (inotify_init1(IN_CLOEXEC) < 0) return made;
  errno = 0;
  return made;
}
static long ptys(long count) {
  long made = 0;
  for (; made < count && !over(); made++)
    if (posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) < 0) return made;
  errno = 0;
  return made;
}
static long inodes(long count) {
  long made = 0;
  char path[64];
  mkdir("inodes.probe", 0700);
  for (; made < count && !over(); made++) {
    snprintf(path, sizeof path, "inodes.probe/%ld", made);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return made;
    close(fd);
  }
  errno = 0;
  return made;
}
static long output(long mib) {
  static char block[1 << 16];
  memset(block, 'y', sizeof block);
  for (long i = 0; i < mib * 16 && !over(); i++)
    if (write(2, block, sizeof block) < 0) return i / 16;
  errno = 0;
  return mib;
}
static long spin(long seconds) {  // On every CPU we may use; says the CPU time that was granted.
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus > 8) cpus = 8;
  for (long i = 0; i < cpus; i++)
    if (fork() == 0) {
      time_t end = time(NULL) + seconds;
      while (time(NULL) < end) {
      }
      _exit(0);
    }
  while (wait(NULL) > 0) {
  }
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  errno = 0;
  return usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 +
         usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000;
}

static const struct {
  const char* name;
  long (*run)(long);
} kAttacks[] = {
    P(fork_bomb), P(zombies), P(orphans), P(memory), P(disk),   P(tmp),    P(shm),
    P(memfd),     P(fds),     P(inotify), P(ptys),   P(inodes), P(output), P(spin),
};

int main(int argc, char** argv) {
  umask(022);
  started = time(NULL);
  if (argc == 2 && !strcmp(argv[1], "list")) {
    for (size_t i = 0; i < COUNT(kProbes); i++) puts(kProbes[i].name);
    return 0;
  }
  if (argc == 4 && !strcmp(argv[1], "attack")) {
    for (size_t i = 0; i < COUNT(kAttacks); i++)
      if (!strcmp(argv[2], kAttacks[i].name)) {
        long reached = kAttacks[i].run(atol(argv[3]));
        int error = errno;
        printf("attack %s reached %ld %s\n", argv[2], reached,
               error ? strerrorname_np(error) : "end");
        fflush(stdout);
        if (!strcmp(argv[2], "fork_bomb")) signal(SIGTERM, SIG_IGN), kill(0, SIGTERM);
        return 0;
      }
    return 2;
  }
  if (argc < 2) {
    fputs("usage: probe list | all | NAME... | attack NAME COUNT\n", stderr);
    return 2;
  }
  int all = !strcmp(argv[1], "all");
  for (size_t i = 0; i < COUNT(kProbes); i++) {
    int wanted = all;
    for (int a = 1; a < argc && !wanted; a++) wanted = !strcmp(argv[a], kProbes[i].name);
    if (wanted) run_probe(kProbes[i].name, kProbes[i].run);
  }
  return 0;
}
