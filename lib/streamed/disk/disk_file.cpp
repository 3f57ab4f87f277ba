// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/disk_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/files/system_calls.hpp"

namespace gridlops {

namespace {

void require_disk(const std::string& directory) {
  struct statfs system {};
  require<OutputError>(
      ::statfs(directory.c_str(), &system) != 0 || system.f_type != TMPFS_MAGIC, directory,
      ": is in memory, where A would take the memory that it is to spare; name a directory on a "
      "disk");
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

DiskFile::DiskFile(std::string place, FileDescriptor descriptor)
    : place_(std::move(place)), file_(std::move(descriptor)), for_reads_(-1) {
  const std::string again = message("/proc/self/fd/", file_.number());
  for_reads_ =
      FileDescriptor(uninterrupted([&] { return ::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT); }));
}

void DiskFile::take_room(Index bytes) {
  if (bytes <= room_) return;
  const DiskWait wait(message("room for ", bytes - room_, " bytes of A in ", place_));
  int result = uninterrupted([&] { return ::fallocate(file_.number(), 0, room_, bytes - room_); });
  // Where the file system takes no room ahead, a full disk shows when it is written.
  if (result != 0 && errno == EOPNOTSUPP)
    result = uninterrupted([&] { return ::ftruncate(file_.number(), bytes); });
  if (result != 0)
    throw OutputError(message(place_, ": cannot take room for ", bytes - room_, " bytes of A: ", reason(),
                              "; free some space, name another directory, or keep more of A in memory"));
  room_ = bytes;
}

DiskFile DiskFile::nameless(const std::string& directory, Index bytes) {
  const char* const given = std::getenv("TMPDIR");
  const std::string usual = given != nullptr && *given != '\0' ? given : "/var/tmp";
  const std::string& place = directory.empty() ? usual : directory;
  require_disk(place);
  FileDescriptor descriptor = open_nameless(place);
  if (descriptor.number() < 0)
    throw OutputError(message(place, ": cannot make a file there for ", bytes, " bytes of A: ", reason(),
                              "; is there such a directory, and may this user write to it?"));
  DiskFile file(place, std::move(descriptor));
  file.take_room(bytes);
  return file;
}

DiskFile DiskFile::for_good(const std::string& path, Index bytes) {
  require_disk(std::filesystem::path(path).parent_path().string());
  auto unnamed = std::make_unique<TemporaryFile>(path);
  unnamed->prepare("", 0);
  DiskFile file(
      path,
      FileDescriptor(uninterrupted([&] { return ::open(unnamed->name().c_str(), O_RDWR | O_CLOEXEC); })));
  if (file.file_.number() < 0) throw OutputError(message(path, ": cannot write the file: ", reason()));
  file.unnamed_ = std::move(unnamed);
  file.take_room(bytes);
  return file;
}

std::optional<DiskFile> DiskFile::of_name(const std::string& path, Index bytes) {
  FileDescriptor descriptor(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  struct stat status {};
  const bool is_it = descriptor.number() >= 0 && ::fstat(descriptor.number(), &status) == 0 &&
                     S_ISREG(status.st_mode) && status.st_size == bytes;
  if (!is_it) return std::nullopt;
  return DiskFile(path, std::move(descriptor));
}

DiskFile DiskFile::to_read(const std::string& path) {
  FileDescriptor descriptor(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  require<InputError>(descriptor.number() >= 0, path, ": cannot read the file: ", reason());
  return DiskFile(path, std::move(descriptor));
}

DiskWait DiskFile::writing(Index bytes) const {
  return DiskWait(message(bytes, " bytes of A to reach ", place_));
}

void DiskFile::write(const void* from, Index bytes, Index offset) {
  for (Index done = 0; done < bytes;) {
    const auto moved = uninterrupted([&] {
      return ::pwrite(file_.number(), static_cast<const char*>(from) + done,
                      static_cast<std::size_t>(bytes - done), offset + done);
    });
    if (moved <= 0)
      throw OutputError(message(place_, ": cannot write ", bytes - done, " bytes of A at byte ",
                                offset + done,
                                " of a file: ", moved == 0 ? "the system takes no more" : reason()));
    done += moved;
  }
}

void DiskFile::finish() {
  const DiskWait wait(message("A to reach ", place_));
  if (uninterrupted([&] { return ::fdatasync(file_.number()); }) != 0)
    throw OutputError(message(place_, ": cannot write A to the disk: ", reason()));
  static_cast<void>(::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED));
}

void DiskFile::keep_as(const std::string& path) {
  unnamed_->take_name(path);
  place_ = path;
}

void DiskFile::read(void* to, Index bytes, Index offset, Index needed) const {
  int descriptor = for_reads_.number() >= 0 ? for_reads_.number() : file_.number();
  for (Index done = 0; done < needed;) {
    const auto moved = uninterrupted([&] {
      return ::pread(descriptor, static_cast<char*>(to) + done, static_cast<std::size_t>(bytes - done),
                     offset + done);
    });
    const bool refuses_direct = moved < 0 && errno == EINVAL && descriptor != file_.number();
    if (refuses_direct) {
      descriptor = file_.number();
      continue;
    }
    if (moved <= 0)
      throw InputError(message(place_, ": cannot read ", needed - done, " bytes of A at byte ", offset + done,
                               " of a file: ", moved == 0 ? "the file ends there" : reason()));
    done += moved;
  }
}

}  // namespace gridlops
