// SPDX-License-Identifier: BSD-3-Clause
#include "io/files/locks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <string_view>
#include <thread>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "io/files/system_calls.hpp"

namespace gridlops {

std::string host_name() {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  return host.data();
}

Lock lock(int descriptor) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = Index{1} << 62;
  range.l_len = 1;
  if (::fcntl(descriptor, F_OFD_SETLK, &range) == 0) return Lock::taken;
  return errno == EAGAIN || errno == EACCES ? Lock::anothers : Lock::impossible;
}

bool is_regular_file_at(const std::filesystem::path& path, int descriptor) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode) &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

LockFile::LockFile(const std::string& path, const std::string& what_for, std::chrono::seconds patience)
    : path_(path) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  // A run that has just ended may have removed the opened file.
  for (int attempt = 0; attempt == 0 || (attempt < 100 && !is_regular_file_at(path, descriptor_.number()));
       ++attempt) {
    descriptor_ = FileDescriptor(uninterrupted(
        [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666); }));
    if (descriptor_.number() < 0)
      throw OutputError(
          message(path, ": cannot make or open this lock: ", reason(), "; if no job uses it, remove it"));
    struct stat status {};
    require<OutputError>(::fstat(descriptor_.number(), &status) == 0 && S_ISREG(status.st_mode), path,
                         ": is no regular file, and cannot be a lock; remove it");
    while (lock(descriptor_.number()) == Lock::anothers) {
      if (std::chrono::steady_clock::now() < deadline) {
        keep_alive();
        const AtWork at_work;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      std::array<char, 512> holder{};
      if (::pread(descriptor_.number(), holder.data(), holder.size() - 1, 0) <= 0) holder = {"another job"};
      throw OutputError(
          message(path, ": is held by ", holder.data(), ", which may still ", what_for,
                  "; wait until that has ended, or name another folder. The lock of a process that "
                  "has died is gone, but that of a host that is down only when the file server "
                  "notices; removing the file frees it at once"));
    }
  }
  constexpr std::string_view first_word = "process ";
  std::array<char, first_word.size()> found{};
  const Index bytes = ::pread(descriptor_.number(), found.data(), found.size(), 0);
  if (bytes > 0 && std::string_view(found.data(), static_cast<std::size_t>(bytes)) != first_word) {
    throw OutputError(message(path,
                              ": is in the way of a lock of that name, and holds something else, which ",
                              "would be lost; move it, or name another folder"));
  }
  const std::string holder = message(first_word, ::getpid(), " on ", host_name());
  // The lock holds even without the line.
  if (::ftruncate(descriptor_.number(), 0) != 0 ||
      ::pwrite(descriptor_.number(), holder.data(), holder.size(), 0) < 0)
    return;
}

LockFile::~LockFile() {
  if (is_regular_file_at(path_, descriptor_.number())) ::unlink(path_.c_str());
}

}  // namespace gridlops
