// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/output_folder.hpp"

#include <filesystem>
#include <system_error>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"

namespace gridlops {

namespace {

namespace fs = std::filesystem;

void require_done(const std::error_code& error, const std::string& directory, const char* what) {
  require<OutputError>(!error, directory, ": cannot ", what, " this folder: ", error.message());
}

/// The name of an entry that is in the way; empty if there is none.
std::string entry_in_the_way(const std::string& directory,
                             const std::function<bool(const std::string&)>& is_in_the_way) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (is_in_the_way(entry->path().filename())) return entry->path().filename();
  require_done(error, directory, "list");
  return {};
}

}  // namespace

void claim_folder(const std::string& directory, const std::string& kind,
                  const std::function<bool(const std::string& name)>& is_in_the_way) {
  std::error_code error;
  fs::create_directories(directory, error);
  require_done(error, directory, "make");
  const std::string mark = message(directory, "/.gridlops-", kind);
  // Another job may begin at the same time. Its mark is there before its files are.
  const std::string found = entry_in_the_way(directory, is_in_the_way);
  const bool is_ours = fs::symlink_status(mark, error).type() == fs::file_type::regular;
  require<OutputError>(found.empty() || is_ours, directory, ": ", found,
                       " is there, which no output of this kind has made (there is no file .gridlops-", kind,
                       "), and which it could replace; it is kept. Name another folder, or move that away");
  if (is_ours) return;
  // Its name says all, and takes no room on the disk.
  if (std::optional<OutputFile> file = OutputFile::create(mark, directory, Access::by_umask)) file->finish();
}

std::shared_ptr<const void> lock_folder(const std::string& directory, const std::string& what_for) {
  return std::make_shared<const LockFile>(message(directory, "/lock"), what_for);
}

}  // namespace gridlops
