// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/files/file.hpp"
#include "io/files/system_calls.hpp"
#include "io/files/temporary_file.hpp"

namespace gridlops {

namespace {

/// The target of a path that must be written in place: a device, a pipe or a socket, whose name no other file
/// should take, or the file where standard output or standard error goes, which would be lost.
class Stream {
 public:
  static std::optional<Stream> at(const std::string& path) {
    struct stat target {};
    if (::stat(path.c_str(), &target) != 0) return std::nullopt;
    for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
      struct stat status {};
      if (::fstat(standard, &status) == 0 && status.st_dev == target.st_dev && status.st_ino == target.st_ino)
        return Stream(path, standard);
    }
    if (S_ISREG(target.st_mode) || S_ISDIR(target.st_mode)) return std::nullopt;
    return Stream(path, -1);
  }

  /// Opens nothing: a reader at the other end of a pipe would take that for the end.
  void check() const {
    if (standard_ < 0 && ::access(path_.c_str(), W_OK) != 0) refuse("cannot write there");
  }

  void fill(const std::function<std::string()>& next_piece) const {
    const FileDescriptor descriptor = open();
    Index size = 0;
    for (std::string piece = next_piece(); !piece.empty(); piece = next_piece()) {
      const auto bytes = static_cast<Index>(piece.size());
      const Index done = transfer_all(bytes, [&](Index begin, std::size_t count) {
        return ::write(descriptor.number(), piece.data() + begin, count);
      });
      size += done;
      if (done < bytes) refuse(message("cannot write more than ", size, " bytes"));
    }
  }

 private:
  Stream(std::string path, int standard) : path_(std::move(path)), standard_(standard) {}

  /// Standard output is opened through its own descriptor, which knows its position in the file.
  FileDescriptor open() const {
    if (standard_ >= 0) {
      FileDescriptor copy(::fcntl(standard_, F_DUPFD_CLOEXEC, 0));
      if (copy.number() < 0) refuse("cannot open it for writing");
      return copy;
    }
    // Without O_NONBLOCK opening a named pipe would wait for a reader, perhaps for ever.
    FileDescriptor opened(
        uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
    if (opened.number() < 0) refuse(errno == ENXIO ? "nobody reads it" : "cannot open it for writing");
    const int flags = ::fcntl(opened.number(), F_GETFL);
    if (flags < 0 || ::fcntl(opened.number(), F_SETFL, flags & ~O_NONBLOCK) != 0)
      refuse("cannot open it for writing");
    return opened;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw OutputError(message(path_, ": ", what, ": ", errno == 0 ? "the system takes no more" : reason()));
  }

  std::string path_;
  int standard_;
};

}  // namespace

void write_text_file(const std::string& path, Access access, const std::function<std::string()>& next_piece) {
  if (const std::optional<Stream> stream = Stream::at(path)) return stream->fill(next_piece);
  TemporaryFile file(path, access);
  file.fill(next_piece);
  file.take_name();
}

void write_text_file(const std::string& path, const std::function<std::string()>& next_piece) {
  write_text_file(path, Access::by_umask, next_piece);
}

void check_text_file(const std::string& path) {
  if (const std::optional<Stream> stream = Stream::at(path)) return stream->check();
  check_output_file(path);
}

}  // namespace gridlops
