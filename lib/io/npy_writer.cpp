// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "gridlops/npy.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "io/tiles.hpp"

namespace gridlops {
namespace {

/// A new file beside the one whose name it is to take. Removed with this object unless it has got that name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : target_(path) {
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
  ~TemporaryFile() {
    if (!renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& name() const { return name_; }

  /// The file has `start` and room for `bytes` in all, and is closed: others may open it.
  void prepare(const std::string& start, Index bytes) {
    file_->resize(bytes);
    file_->write(start.data(), static_cast<Index>(start.size()), 0);
    file_->finish();
  }

  void take_name() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) {
      const std::string reason = std::system_category().message(errno);
      throw OutputError(message(target_.string(), ": cannot give ", name_, " this name: ", reason));
    }
    renamed_ = true;
    // The data are safe; so that the name is, too, its directory is written. Where that cannot be done, the
    // old file may reappear after a power cut, which is no reason to fail now.
    const std::filesystem::path parent = target_.parent_path();
    const FileDescriptor directory(
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.number() >= 0) static_cast<void>(::fsync(directory.number()));
  }

 private:
  std::filesystem::path target_;
  std::string name_;
  std::optional<OutputFile> file_;
  bool renamed_ = false;
};

/// Writes this rank's block of X into a file in Fortran order whose elements begin at data_offset.
template <Scalar T>
void write_block(const std::string& path, Index data_offset, const DistMatrix<T>& X) {
  constexpr Index size = sizeof(T);
  OutputFile file = OutputFile::open(path);
  const auto write_columns = [&](Range cols, Range rows, MatrixView<const T> from) {
    for_each_run(X.rows(), cols, rows, from.stride, [&](Index in_file, Index in_memory, Index count) {
      file.write(from.data + in_memory, count * size, data_offset + in_file * size);
    });
  };
  const Range rows = X.local_row_range();
  const Range cols = X.local_col_range();
  Backend& backend = *X.grid()->backend();
  if (backend.memory_space() == MemorySpace::host) {
    write_columns(cols, rows, X.local());
  } else {
    std::vector<T> buffer(static_cast<std::size_t>(std::min(X.local().size(), buffer_elements<T>)));
    for_each_tile(cols, rows, buffer_elements<T>, [&](Range tile_cols, Range tile_rows) {
      const MatrixView<T> tile(buffer.data(), tile_rows.size, tile_cols.size);
      const auto part = X.local().block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
      for (Index j = 0; j < tile.cols; ++j)
        backend.download(part.column(j), tile.column(j), tile.rows * size);
      write_columns(tile_cols, tile_rows, tile);
    });
  }
  file.finish();
}

}  // namespace

template <Scalar T>
void write_npy(const std::string& path, const DistMatrix<T>& X, int dimensions) {
  require<UsageError>(dimensions == 1 || dimensions == 2, path, ": an array of ", dimensions,
                      " dimensions was asked for, but a matrix is written with two, or one");
  require<ShapeError>(dimensions == 2 || X.cols() == 1, path, ": a matrix of ", X.rows(), " x ", X.cols(),
                      " cannot be written as one-dimensional array; that needs a single column");
  if (!X.grid()->is_member()) return;
  Communicator& comm = X.grid()->comm();
  const std::string start = npy_header_text({.type = scalar_type_of<T>,
                                             .rows = X.rows(),
                                             .cols = X.cols(),
                                             .dimensions = dimensions,
                                             .fortran_order = true});
  const auto data_offset = static_cast<Index>(start.size());

  std::optional<TemporaryFile> temporary;  // on rank 0
  succeed_together(comm, [&] {
    if (comm.rank() != 0) return;
    temporary.emplace(path);
    temporary->prepare(start, data_offset + X.rows() * X.cols() * static_cast<Index>(sizeof(T)));
  });
  const std::string name = broadcast_text(comm, temporary ? temporary->name() : std::string(), 0);
  succeed_together(comm, [&] {
    if (X.owned() && !X.local().empty()) write_block(name, data_offset, X);
  });
  succeed_together(comm, [&] {
    if (temporary) temporary->take_name();
  });
}

template void write_npy(const std::string&, const DistMatrix<float>&, int);
template void write_npy(const std::string&, const DistMatrix<double>&, int);
template void write_npy(const std::string&, const DistMatrix<std::complex<float>>&, int);
template void write_npy(const std::string&, const DistMatrix<std::complex<double>>&, int);

}  // namespace gridlops
