// SPDX-License-Identifier: BSD-3-Clause
#include "output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "gridlops/error.hpp"

namespace gridlops::program {

namespace {

std::string reason() { return std::system_category().message(errno); }

void check_one(const NamedOutput& output) {
  std::error_code ignored;
  if (std::filesystem::exists(output.path, ignored) &&
      !std::filesystem::is_regular_file(output.path, ignored)) {
    throw OutputError(
        fmt::format("{} {}: exists and is no regular file; give another name", output.option, output.path));
  }
  const std::string trial = fmt::format("{}.try.{}", output.path, ::getpid());
  const int descriptor = ::open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    throw OutputError(
        fmt::format("{} {}: no file can be made there: {}; nothing was computed, as its result would be lost",
                    output.option, output.path, reason()));
  }
  ::close(descriptor);
  ::unlink(trial.c_str());
}

}  // namespace

OutputText::OutputText(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp.{}", path_, ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot make the file");
}

OutputText::~OutputText() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputText::fail(const char* what) const {
  throw OutputError(fmt::format("{}: {}: {}", path_, what, reason()));
}

void OutputText::write(std::string_view text) {
  constexpr std::size_t enough = 1 << 16;
  pending_ += text;
  if (pending_.size() >= enough) flush();
}

void OutputText::flush() {
  for (std::size_t done = 0; done < pending_.size();) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno != EINTR) fail("cannot write; is there space left?");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  pending_.clear();
}

void OutputText::commit() {
  flush();
  if (::fsync(descriptor_) != 0) fail("its data did not reach the disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot take this name");
  ::close(descriptor_);
  descriptor_ = -1;
}

void check_outputs(Communicator& world, const std::vector<NamedOutput>& outputs) {
  for (const NamedOutput& one : outputs) {
    for (const NamedOutput& other : outputs) {
      if (&one != &other && !one.path.empty() && one.path == other.path) {
        throw UsageError(fmt::format("{} and {} both name {}; they are different files", one.option,
                                     other.option, one.path));
      }
    }
  }
  succeed_together(world, [&] {
    if (world.rank() != 0) return;
    for (const NamedOutput& output : outputs)
      if (!output.path.empty()) check_one(output);
  });
}

}  // namespace gridlops::program
