// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "streamed/disk/disk_file.hpp"

namespace gridlops {

/// Where parts are read from, piece by piece. Any thread may call it.
class PartSource {
 public:
  /// A piece is about this long. With some of them under way at a time, products read at a disk's rate:
  /// docs/performance-notes.md.
  static constexpr Index piece_bytes = Index{4} << 20;

  virtual ~PartSource() = default;
  /// Where they are, for messages.
  virtual const std::string& place() const = 0;
  /// The bytes of a part in memory.
  virtual Index bytes(Index part) const = 0;
  /// In how many pieces a part is read, at least one.
  virtual Index pieces(Index part) const = 0;
  /// Reads a piece to its place in the memory of its part. staging: memory of this thread's alone, aligned to
  /// DiskFile::block, as PartPlan has it. Returns how many bytes it asked the file for. Throws InputError.
  virtual Index read(Index part, Index piece, std::byte* memory, std::byte* staging) const = 0;
};

/// Parts that lie in a file as they lie in memory.
class FileParts final : public PartSource {
 public:
  /// Both are multiples of DiskFile::block.
  struct Extent {
    Index offset = 0, bytes = 0;
  };
  FileParts(std::shared_ptr<const DiskFile> file, std::vector<Extent> parts)
      : file_(std::move(file)), parts_(std::move(parts)) {}

  const std::string& place() const override { return file_->place(); }
  Index bytes(Index part) const override { return parts_[at(part)].bytes; }
  Index pieces(Index part) const override { return (bytes(part) + piece_bytes - 1) / piece_bytes; }
  Index read(Index part, Index piece, std::byte* memory, std::byte*) const override {
    const Extent& whole = parts_[at(part)];
    const Index begin = piece * piece_bytes, bytes = std::min(piece_bytes, whole.bytes - begin);
    file_->read(memory + begin, bytes, whole.offset + begin);
    return bytes;
  }

 private:
  std::shared_ptr<const DiskFile> file_;
  std::vector<Extent> parts_;
};

}  // namespace gridlops
