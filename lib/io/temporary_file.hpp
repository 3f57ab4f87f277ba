// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/file.hpp"

namespace gridlops {

/// A new file beside the one whose name it is to take. Removed with this object unless it has got that name.
class TemporaryFile {
 public:
  /// Throws OutputError if `path` is something that a file must not replace.
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& name() const { return name_; }

  /// The file has `start` and room for `bytes` in all, and is closed: others may open it.
  void prepare(const std::string& start, Index bytes);

  /// The file's data must be on the disk.
  void take_name();

 private:
  std::filesystem::path target_;
  std::string name_;
  std::optional<OutputFile> file_;
  bool renamed_ = false;
};

/// The names in a directory are on the disk, where that can be done; where not, a file may have its old name
/// again after a power cut.
void synchronise_directory(const std::filesystem::path& directory);

/// A text file that appears complete or not at all. Throws OutputError.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace gridlops
