// SPDX-License-Identifier: BSD-3-Clause
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {
namespace {

constexpr const char* room = "; free some space, or write elsewhere";

/// The system's reason for the call that failed last.
std::string reason() { return std::system_category().message(errno); }

/// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Moves bytes by transfer(done), which returns how many it moved, −1 or 0 if it could not; returns how far
/// it came.
template <class Transfer>
Index transfer_all(Index bytes, Transfer&& transfer) {
  Index done = 0;
  while (done < bytes) {
    const auto moved = uninterrupted([&] { return transfer(done); });
    if (moved <= 0) {
      if (moved == 0) errno = 0;
      break;
    }
    done += moved;
  }
  return done;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

// Without O_NONBLOCK, which regular files ignore, opening a named pipe would wait for a writer.
InputFile::InputFile(const std::string& path)
    : path_(path),
      descriptor_(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })) {
  struct stat status {};
  if (descriptor_.number() < 0 || ::fstat(descriptor_.number(), &status) != 0) {
    throw InputError(message(path, ": cannot open the file: ", reason()));
  }
  require<InputError>(S_ISREG(status.st_mode), path,
                      S_ISDIR(status.st_mode) ? ": is a directory" : ": is a device, pipe or socket",
                      "; a regular file is needed, because every rank reads its own part");
  size_ = status.st_size;
}

void InputFile::read(void* to, Index bytes, Index offset) const {
  const Index done = transfer_all(bytes, [&](Index begin) {
    return ::pread(descriptor_.number(), static_cast<char*>(to) + begin,
                   static_cast<std::size_t>(bytes - begin), offset + begin);
  });
  if (done < bytes) {
    throw InputError(message(path_, ": cannot read ", bytes - done, " bytes at byte ", offset + done, ": ",
                             errno == 0 ? "the file ends there; was it changed meanwhile?" : reason()));
  }
}

OutputFile::OutputFile(const std::string& path, FileDescriptor descriptor)
    : path_(path), descriptor_(std::move(descriptor)) {
  if (descriptor_.number() < 0) {
    throw OutputError(message(path, ": cannot open the file for writing: ", reason(),
                              "; is there such a directory, and may this user write to it?"));
  }
}

std::optional<OutputFile> OutputFile::create(const std::string& path) {
  FileDescriptor descriptor(uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); }));
  if (descriptor.number() < 0 && errno == EEXIST) return std::nullopt;
  return OutputFile(path, std::move(descriptor));
}

OutputFile OutputFile::open(const std::string& path) {
  return {path, FileDescriptor(
                    uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC); }))};
}

void OutputFile::resize(Index bytes) {
  if (uninterrupted([&] { return ::ftruncate(descriptor_.number(), bytes); }) != 0) {
    throw OutputError(message(path_, ": cannot make the file ", bytes, " bytes long: ", reason(), room));
  }
}

void OutputFile::write(const void* from, Index bytes, Index offset) {
  const Index done = transfer_all(bytes, [&](Index begin) {
    return ::pwrite(descriptor_.number(), static_cast<const char*>(from) + begin,
                    static_cast<std::size_t>(bytes - begin), offset + begin);
  });
  if (done < bytes) {
    throw OutputError(message(path_, ": cannot write ", bytes - done, " bytes at byte ", offset + done, ": ",
                              errno == 0 ? "the system takes no more" : reason(), room));
  }
}

void OutputFile::finish() {
  if (uninterrupted([&] { return ::fsync(descriptor_.number()); }) != 0) {
    throw OutputError(message(path_, ": its data did not reach the disk: ", reason(), room));
  }
  // After EINTR the descriptor is gone all the same, and the data are safe already.
  if (::close(descriptor_.release()) != 0 && errno != EINTR) {
    throw OutputError(message(path_, ": cannot close the file: ", reason(), room));
  }
}

}  // namespace gridlops
