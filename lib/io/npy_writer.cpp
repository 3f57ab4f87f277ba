// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "gridlops/npy.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "io/temporary_file.hpp"
#include "io/tiles.hpp"

namespace gridlops {
namespace {

/// Writes this rank's block of X into a file in Fortran order whose elements begin at data_offset.
template <Scalar T>
void write_block(const std::string& path, Index data_offset, const ConstDistMatrix<T>& X) {
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
void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions) {
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

#define GRIDLOPS_INSTANTIATE(T) template void write_npy(const std::string&, const ConstDistMatrix<T>&, int);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
