// SPDX-License-Identifier: BSD-3-Clause
#include "io/files/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/files/system_calls.hpp"

namespace gridlops {

namespace {

constexpr const char* room = "; free some space, or write elsewhere";

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
  const Index done = transfer_all(bytes, [&](Index begin, std::size_t count) {
    return ::pread(descriptor_.number(), static_cast<char*>(to) + begin, count, offset + begin);
  });
  if (done < bytes) {
    throw InputError(message(path_, ": cannot read ", bytes - done, " bytes at byte ", offset + done, ": ",
                             errno == 0 ? "the file ends there; was it changed meanwhile?" : reason()));
  }
}

std::string InputFile::text(Index most_bytes) const {
  require<InputError>(size_ <= most_bytes, path_, ": has ", size_, " bytes, but no such file has more than ",
                      most_bytes);
  std::string text(static_cast<std::size_t>(size_), '\0');
  read(text.data(), size_, 0);
  return text;
}

OutputFile::OutputFile(const std::string& name, FileDescriptor descriptor)
    : name_(name), descriptor_(std::move(descriptor)) {
  if (descriptor_.number() < 0) {
    throw OutputError(message(name, ": cannot open the file for writing: ", reason(),
                              "; is there such a directory, and may this user write to it?"));
  }
}

std::optional<OutputFile> OutputFile::create(const std::string& path, const std::string& name,
                                             Access access) {
  const mode_t mode = access == Access::owner ? 0600 : 0666;
  FileDescriptor descriptor(uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode); }));
  if (descriptor.number() < 0 && errno == EEXIST) return std::nullopt;
  return OutputFile(name, std::move(descriptor));
}

OutputFile OutputFile::open(const std::string& path, const std::string& name) {
  return {name, FileDescriptor(
                    uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC); }))};
}

void OutputFile::resize(Index bytes) {
  if (uninterrupted([&] { return ::ftruncate(descriptor_.number(), bytes); }) != 0) {
    throw OutputError(message(name_, ": cannot make the file ", bytes, " bytes long: ", reason(), room));
  }
}

void OutputFile::write(const void* from, Index bytes, Index offset) {
  const Index done = transfer_all(bytes, [&](Index begin, std::size_t count) {
    return ::pwrite(descriptor_.number(), static_cast<const char*>(from) + begin, count, offset + begin);
  });
  if (done < bytes) {
    throw OutputError(message(name_, ": cannot write ", bytes - done, " bytes at byte ", offset + done, ": ",
                              errno == 0 ? "the system takes no more" : reason(), room));
  }
}

void OutputFile::copy(const InputFile& from) {
  // The kernel copies what it can. Between some file systems it cannot.
  const Index by_kernel = transfer_all(from.size(), [&](Index begin, std::size_t count) {
    off_t in = begin, out = begin;
    return ::copy_file_range(from.descriptor(), &in, descriptor_.number(), &out, count, 0);
  });
  std::vector<char> piece(by_kernel < from.size() ? std::size_t{4} << 20 : 0);
  for (Index done = by_kernel; done < from.size();) {
    const Index bytes = std::min(from.size() - done, static_cast<Index>(piece.size()));
    from.read(piece.data(), bytes, done);
    write(piece.data(), bytes, done);
    done += bytes;
  }
}

void OutputFile::finish() {
  if (uninterrupted([&] { return ::fsync(descriptor_.number()); }) != 0) {
    throw OutputError(message(name_, ": its data did not reach the disk: ", reason(), room));
  }
  // After EINTR the descriptor is closed anyway, and the data are already safe.
  if (::close(descriptor_.release()) != 0 && errno != EINTR) {
    throw OutputError(message(name_, ": cannot close the file: ", reason(), room));
  }
}

void synchronise_directory(const std::filesystem::path& directory) {
  const std::string name = directory.empty() ? "." : directory.string();
  const FileDescriptor descriptor(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() < 0) return;
  const bool failed = uninterrupted([&] { return ::fsync(descriptor.number()); }) != 0;
  // Other errors mean that this system cannot do it.
  require<OutputError>(!failed || (errno != EIO && errno != ENOSPC && errno != EDQUOT), name,
                       ": the names in this folder did not reach the disk: ", reason());
}

}  // namespace gridlops
