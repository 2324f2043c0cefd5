#include "runtime/native/template_image.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/files.h"
#include "os/loop.h"
#include "os/mount.h"
#include "runtime/native/template_tree.h"

namespace glovebox::native {
namespace {

Result<void> run_mkfs(const std::string& path) {
  // No journal: nothing on it outlives the sandbox, and each journal is a kernel thread.
  const char* argv[] = {"mkfs.ext4",
                        "-q",
                        "-F",
                        "-b",
                        "4096",
                        "-O",
                        "^has_journal,^resize_inode",
                        "-E",
                        "lazy_itable_init=1,nodiscard,root_owner=0:0",
                        "-m",
                        "0",
                        path.c_str(),
                        nullptr};
  const char* env[] = {"PATH=/usr/sbin:/sbin:/usr/bin:/bin", nullptr};
  pid_t pid = 0;
  int err = ENOENT;
  for (const char* program : {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"}) {
    err = ::posix_spawn(&pid, program, nullptr, nullptr, const_cast<char**>(argv),
                        const_cast<char**>(env));
    if (err == 0) break;
  }
  if (err != 0) return Error::from_errno(err, "run mkfs.ext4 (package e2fsprogs)");
  int status = 0;
  GB_TRY(os::retry("waitpid", "mkfs.ext4", [&] { return ::waitpid(pid, &status, 0); }));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error(Errc::kInternal, "mkfs.ext4 failed on " + path);
  }
  return {};
}

Result<UniqueFd> make_image(const std::string& path, std::uint64_t bytes,
                            const std::string& scratch) {
  ::unlink(path.c_str());
  GB_TRY_ASSIGN(const int raw, os::retry("open", path, [&] {
                  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                }));
  UniqueFd image(raw);
  GB_TRY(os::retry("ftruncate", path,
                   [&] { return ::ftruncate(image.get(), static_cast<off_t>(bytes)); }));
  GB_TRY(run_mkfs(path));
  {
    GB_TRY_ASSIGN(const UniqueFd mount, mount_image(image.get(), -1));
    GB_TRY_ASSIGN(const os::AttachedMount at, os::AttachedMount::attach(mount.get(), scratch));
    GB_TRY(fill_template_tree(at.path()));
  }
  // The unmount above has written everything to the file before the loop device let go of it.
  return image;
}

}  // namespace

Result<UniqueFd> mount_image(int image_fd, int user_ns) {
  GB_TRY_ASSIGN(const os::LoopDevice loop, os::attach_loop(image_fd));
  // Barriers would make fsync(2) wait for the host's disk, for data that ends with the sandbox.
  GB_TRY_ASSIGN(
      UniqueFd mount,
      os::make_mount("ext4", {{"source", loop.path}, {"noinit_itable", ""}, {"nobarrier", ""}},
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME));
  if (user_ns >= 0) GB_TRY(os::set_mount_attributes(mount.get(), 0, user_ns));
  return mount;
}

Result<int> TemplateImages::of_size(std::uint64_t bytes) {
  if (const auto found = images_.find(bytes); found != images_.end()) return found->second.get();
  if (images_.size() >= kKeptMax) images_.erase(images_.begin());
  const std::string path = dir_ + "/template-" + std::to_string(bytes);
  GB_TRY_ASSIGN(UniqueFd image,
                make_image(path, bytes, scratch_).context("make the disk image of the template"));
  ::unlink(path.c_str());  // The descriptor is enough, and leaves nothing behind.
  return images_.emplace(bytes, std::move(image)).first->second.get();
}

}  // namespace glovebox::native
