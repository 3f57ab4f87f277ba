// SPDX-License-Identifier: BSD-3-Clause
#include "io/temporary_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

TemporaryFile::TemporaryFile(const std::string& path) : target_(path) {
  std::error_code error;
  if (std::filesystem::is_symlink(target_, error)) {
    // What a link points to is replaced, not the link.
    const std::filesystem::path linked = std::filesystem::weakly_canonical(target_, error);
    if (!error) target_ = linked;
  }
  require<OutputError>(
      !std::filesystem::exists(target_, error) || std::filesystem::is_regular_file(target_, error), path,
      ": exists, is no regular file, and will not be replaced by one; give another name");
  for (int attempt = 0; !file_; ++attempt) {
    name_ = message(target_.string(), ".tmp.", ::getpid(), "-", attempt);
    file_ = OutputFile::create(name_);
  }
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(name_.c_str());
}

void TemporaryFile::prepare(const std::string& start, Index bytes) {
  file_->resize(bytes);
  file_->write(start.data(), static_cast<Index>(start.size()), 0);
  file_->finish();
}

void TemporaryFile::take_name() {
  if (::rename(name_.c_str(), target_.c_str()) != 0) {
    const std::string reason = std::system_category().message(errno);
    throw OutputError(message(target_.string(), ": cannot give ", name_, " this name: ", reason));
  }
  renamed_ = true;
  synchronise_directory(target_.parent_path());
}

void synchronise_directory(const std::filesystem::path& directory) {
  const FileDescriptor descriptor(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() >= 0) static_cast<void>(::fsync(descriptor.number()));
}

void write_text_file(const std::string& path, const std::string& text) {
  TemporaryFile file(path);
  file.prepare(text, static_cast<Index>(text.size()));
  file.take_name();
}

}  // namespace gridlops
