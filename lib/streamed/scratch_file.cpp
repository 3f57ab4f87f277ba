// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/scratch_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

std::string reason() { return std::system_category().message(errno); }

template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// A file of this process alone. Where the file system has none without a name, one loses its name at once.
FileDescriptor open_nameless(const std::string& directory) {
  const int nameless =
      uninterrupted([&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600); });
  if (nameless >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return FileDescriptor(nameless);
  std::string name = directory + "/gridlops-XXXXXX";
  FileDescriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.number() >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& directory, Index bytes) : directory_(directory) {
  const AtWork at_work;
  if (directory_.empty()) {
    const char* const given = std::getenv("TMPDIR");
    directory_ = given != nullptr && *given != '\0' ? given : "/var/tmp";
  }
  struct statfs system {};
  if (::statfs(directory_.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC)
    throw OutputError(message(directory_,
                              ": is in memory, where A on a disk would take the memory that it is to "
                              "spare; name a directory on a disk"));
  written_ = open_nameless(directory_);
  if (written_.number() < 0)
    throw OutputError(message(directory_, ": cannot make a file there for ", bytes, " bytes of A: ", reason(),
                              "; is there such a directory, and may this user write to it?"));
  if (bytes > 0) {
    int failed = ::posix_fallocate(written_.number(), 0, bytes);
    while (failed == EINTR) failed = ::posix_fallocate(written_.number(), 0, bytes);
    if (failed != 0)
      throw OutputError(message(directory_, ": cannot take room for ", bytes,
                                " bytes of A: ", std::system_category().message(failed),
                                "; free some space, name another directory, or keep more of A in memory"));
  }
  const std::string again = message("/proc/self/fd/", written_.number());
  read_ =
      FileDescriptor(uninterrupted([&] { return ::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT); }));
}

void ScratchFile::write(const void* from, Index bytes, Index offset) {
  for (Index done = 0; done < bytes;) {
    const auto moved = uninterrupted([&] {
      return ::pwrite(written_.number(), static_cast<const char*>(from) + done,
                      static_cast<std::size_t>(bytes - done), offset + done);
    });
    if (moved <= 0)
      throw OutputError(message(directory_, ": cannot write ", bytes - done, " bytes of A at byte ",
                                offset + done,
                                " of a file there: ", moved == 0 ? "the system takes no more" : reason()));
    done += moved;
  }
}

void ScratchFile::finish() {
  const AtWork at_work;
  if (uninterrupted([&] { return ::fdatasync(written_.number()); }) != 0)
    throw OutputError(message(directory_, ": cannot write A to the disk: ", reason()));
  static_cast<void>(::posix_fadvise(written_.number(), 0, 0, POSIX_FADV_DONTNEED));
}

void ScratchFile::read(void* to, Index bytes, Index offset) const {
  const int descriptor = read_.number() >= 0 ? read_.number() : written_.number();
  for (Index done = 0; done < bytes;) {
    const auto moved = uninterrupted([&] {
      return ::pread(descriptor, static_cast<char*>(to) + done, static_cast<std::size_t>(bytes - done),
                     offset + done);
    });
    if (moved <= 0)
      throw InputError(message(directory_, ": cannot read ", bytes - done, " bytes of A at byte ",
                               offset + done,
                               " of a file there: ", moved == 0 ? "the file ends there" : reason()));
    done += moved;
  }
}

}  // namespace gridlops
