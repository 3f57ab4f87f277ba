// SPDX-License-Identifier: BSD-3-Clause
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/at_work.hpp"
#include "base/hash.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops {

namespace {

constexpr const char* room = "; free some space, or write elsewhere";

/// The system's reason for the last failed call.
std::string reason() { return std::system_category().message(errno); }

/// The result of a call, repeated while signals interrupt it.
template <class Call>
auto uninterrupted(Call&& call) {
  const AtWork at_work;
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Moves bytes by transfer(done, count), which returns the number moved, or −1 or 0 if it could not. Returns
/// the total moved. On slow disks it goes in pieces, so that other ranks hear of this one meanwhile.
template <class Transfer>
Index transfer_all(Index bytes, Transfer&& transfer) {
  constexpr Index piece = Index{64} << 20;
  Index done = 0;
  while (done < bytes) {
    keep_alive();
    const auto count = static_cast<std::size_t>(std::min(piece, bytes - done));
    const auto moved = uninterrupted([&] { return transfer(done, count); });
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

namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  return host.data();
}

/// The prefix of all temporary names that this host makes for a file. It has a hash of the host's name, which
/// may itself be too long for a file name.
std::string prefix_of(const std::string& target) {
  const std::string host = host_name();
  return message(target, temporary_mark, hash_of_text(host), "-");
}

enum class Lock { taken, anothers, impossible };

/// Locks a byte beyond all data, because on some file systems nobody else may write to a locked range. The
/// kernel drops the lock when the descriptor is closed, or when its process dies.
Lock lock(int descriptor) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = Index{1} << 62;
  range.l_len = 1;
  if (::fcntl(descriptor, F_OFD_SETLK, &range) == 0) return Lock::taken;
  return errno == EAGAIN || errno == EACCES ? Lock::anothers : Lock::impossible;
}

FileDescriptor open_to_lock(const std::string& name) {
  return FileDescriptor(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

/// Whether the text after the prefix of a temporary name is "PID-N".
bool ends_as_temporary(std::string_view rest) {
  pid_t process = 0;
  int attempt = 0;
  const char* const end = rest.data() + rest.size();
  const auto [dash, error] = std::from_chars(rest.data(), end, process);
  if (error != std::errc() || dash == end || *dash != '-') return false;
  const auto [stopped, wrong] = std::from_chars(dash + 1, end, attempt);
  return wrong == std::errc() && stopped == end && process > 0;
}

/// Whether the name still leads to the open file: another run may have removed that file meanwhile.
bool is_regular_file_at(const fs::path& path, int descriptor) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode) &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Removes a temporary file unless the run that made it is alive, and so locks it. Does not ask whether the
/// named process lives: a killed process may linger as a zombie, and another may have its number.
void remove_if_dead(const fs::path& path) {
  const FileDescriptor descriptor = open_to_lock(path);
  if (descriptor.number() >= 0 && lock(descriptor.number()) == Lock::taken &&
      is_regular_file_at(path, descriptor.number()))
    ::unlink(path.c_str());
}

/// Removes the temporary files that killed runs have left beside a file.
void remove_dead(const fs::path& target) {
  const std::string prefix = prefix_of(target.filename());
  const fs::path folder = target.parent_path();
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.compare(0, prefix.size(), prefix) == 0 &&
        ends_as_temporary(std::string_view(name).substr(prefix.size())))
      remove_if_dead(entry->path());
  }
}

/// The file to be replaced at a path; nothing if there is none.
std::optional<struct stat> file_to_replace(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  require<OutputError>(S_ISREG(status.st_mode), path,
                       ": exists, is no regular file, and will not be replaced by one; give another name");
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    throw OutputError(message(path, ": exists and may not be written: ", reason(),
                              "; it is kept. Allow it (chmod u+w), or give another name"));
  return status;
}

/// Gives a file the mode of another, and its owner and group as far as this user may. If the file cannot have
/// that group, its own group gets the permissions of all others.
void pass_on(const struct stat& from, const std::string& to) {
  struct stat now {};
  if (::lstat(to.c_str(), &now) != 0) return;
  constexpr auto same = static_cast<uid_t>(-1);
  mode_t mode = from.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (now.st_gid != from.st_gid && ::lchown(to.c_str(), same, from.st_gid) != 0)
    mode = (mode & ~mode_t{S_IRWXG}) | ((mode & S_IRWXO) << 3);
  // If this fails, the file is more private than necessary.
  if ((now.st_mode & mode_t{07777}) != mode && ::chmod(to.c_str(), mode) != 0) return;
  if (now.st_uid != from.st_uid && ::lchown(to.c_str(), from.st_uid, same) != 0) return;
}

}  // namespace

std::string written_file(const std::string& path) {
  constexpr int most_links = 40;  // as many as Linux follows
  fs::path target = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(target, error); ++links) {
    require<OutputError>(links < most_links, path, ": leads from link to link, more than ", most_links,
                         " times; is it a circle? Give another name");
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = target.parent_path() / next;
  }
  return target.string();
}

TemporaryFile::TemporaryFile(const std::string& path, Access access)
    : given_(path), target_(written_file(path)), replaced_(file_to_replace(path)) {
  remove_dead(target_);
  for (int attempt = 0; !file_; ++attempt) {
    name_ = message(prefix_of(target_), ::getpid(), "-", attempt);
    file_ = OutputFile::create(name_, given_, replaced_ ? Access::owner : access);
    if (file_ && !guard()) file_.reset();
  }
}

/// Locks the new file. Returns false if another run took it for the file of a killed run, and locked it
/// first.
bool TemporaryFile::guard() {
  lock_ = open_to_lock(name_);
  if (lock_.number() < 0) return errno != ENOENT;
  if (lock(lock_.number()) == Lock::anothers) return false;
  return is_regular_file_at(name_, lock_.number());
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(name_.c_str());
}

void TemporaryFile::prepare(const std::string& start, Index bytes) {
  file_->resize(bytes);
  file_->write(start.data(), static_cast<Index>(start.size()), 0);
  file_->finish();
}

void TemporaryFile::copy(const std::string& path) {
  OutputFile file = OutputFile::open(name_, given_);
  file.copy(InputFile(path));
  file.finish();
}

void TemporaryFile::fill(const std::function<std::string()>& next_piece) {
  Index size = 0;
  for (std::string piece = next_piece(); !piece.empty(); piece = next_piece()) {
    file_->write(piece.data(), static_cast<Index>(piece.size()), size);
    size += static_cast<Index>(piece.size());
  }
  file_->finish();
}

void TemporaryFile::take_name() {
  if (replaced_) pass_on(*replaced_, name_);
  if (::rename(name_.c_str(), target_.c_str()) != 0) {
    throw OutputError(message(given_, ": cannot give ", name_, " this name: ", reason()));
  }
  renamed_ = true;
  synchronise_directory(target_.parent_path());
}

void TemporaryFile::take_name(const std::string& path) {
  given_ = path;
  target_ = path;
  take_name();
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

void synchronise_directory(const std::filesystem::path& directory) {
  const std::string name = directory.empty() ? "." : directory.string();
  const FileDescriptor descriptor(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() < 0) return;
  const bool failed = uninterrupted([&] { return ::fsync(descriptor.number()); }) != 0;
  // Other errors mean that this system cannot do it.
  require<OutputError>(!failed || (errno != EIO && errno != ENOSPC && errno != EDQUOT), name,
                       ": the names in this folder did not reach the disk: ", reason());
}

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

void check_output_file(const std::string& path) { const TemporaryFile trial(path); }

void check_text_file(const std::string& path) {
  if (const std::optional<Stream> stream = Stream::at(path)) return stream->check();
  check_output_file(path);
}

}  // namespace gridlops
