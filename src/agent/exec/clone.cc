#include "agent/exec/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstdint>

namespace glovebox::agent {
namespace {

// A system call after which the child must not return through our frames: they belong to the
// caller, which goes on from them later. So the child leaves the assembly by a call, below the
// caller's stack and its red zone.
long enter(long number, long a, long b, void (*child)(void*), void* context) noexcept {
#if defined(__x86_64__)
  long result = number;
  register long third asm("rdx") = 0;
  register long fourth asm("r10") = 0;
  register long fifth asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "sub $256, %%rsp\n\t"
      "and $-16, %%rsp\n\t"
      "mov %[context], %%rdi\n\t"
      "call *%[child]\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(a), "S"(b), "r"(third), "r"(fourth),
        "r"(fifth), [context] "r"(context), [child] "r"(child)
      : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long result asm("x0") = a;
  register long second asm("x1") = b;
  register long third asm("x2") = 0;
  register long fourth asm("x3") = 0;
  register long fifth asm("x4") = 0;
  register long call asm("x8") = number;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "sub sp, sp, #256\n\t"
      "mov x0, %[context]\n\t"
      "blr %[child]\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(second), "r"(third), "r"(fourth), "r"(fifth),
        "r"(call), [context] "r"(context), [child] "r"(child)
      : "memory", "cc", "x30");
  return result;
#else
#error "clone_like_vfork is not written for this processor"
#endif
}

}  // namespace

long clone_like_vfork(void (*child)(void*), void* context, int cgroup_fd) noexcept {
  if (cgroup_fd < 0) {
    return enter(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, child, context);
  }
  ::clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  return enter(SYS_clone3, static_cast<long>(reinterpret_cast<std::uintptr_t>(&args)), sizeof args,
               child, context);
}

}  // namespace glovebox::agent
