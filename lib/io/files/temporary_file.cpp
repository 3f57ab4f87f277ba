// SPDX-License-Identifier: BSD-3-Clause
#include "io/files/temporary_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/files/locks.hpp"
#include "io/files/system_calls.hpp"

namespace gridlops {

namespace {

namespace fs = std::filesystem;

/// The prefix of all temporary names that this host makes for a file. It has a hash of the host's name, which
/// may itself be too long for a file name.
std::string prefix_of(const std::string& target) {
  const std::string host = host_name();
  return message(target, temporary_mark, hash_of_text(host), "-");
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

void check_output_file(const std::string& path) { const TemporaryFile trial(path); }

}  // namespace gridlops
