// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "io/files/file.hpp"
#include "io/files/shared_file.hpp"
#include "io/tiles.hpp"

namespace gridlops {

namespace {

/// Writes this rank's block of X, which begins at a column of the matrix in the file, into the file at a
/// path, whose elements begin at data_offset, line by line. Errors call the file by its name.
template <Scalar T>
void write_block(const std::string& path, const std::string& name, Index data_offset, bool by_columns,
                 Index file_cols, Index first, const ConstDistMatrix<T>& X) {
  constexpr Index size = sizeof(T);
  OutputFile file = OutputFile::open(path, name);
  const Range rows = X.local_row_range(), cols = cols_in_file(X, first);
  Backend& backend = *X.grid()->backend();
  const bool on_host = backend.memory_space() == MemorySpace::host;
  const auto write_lines = [&](Range lines, Range along, MatrixView<const T> from) {
    for_each_run(by_columns ? X.rows() : file_cols, lines, along, from.stride,
                 [&](Index in_file, Index in_memory, Index count) {
                   file.write(from.data + in_memory, count * size, data_offset + in_file * size);
                 });
  };
  std::vector<T> buffer, transposed;
  const auto write_tile = [&](Range tile_rows, Range tile_cols) {
    MatrixView<const T> tile = X.local().block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
    if (!on_host) {
      buffer.resize(at(tile.size()));
      for (Index j = 0; j < tile.cols; ++j)
        backend.download(tile.column(j), buffer.data() + j * tile.rows, tile.rows * size);
      tile = {buffer.data(), tile.rows, tile.cols};
    }
    if (by_columns) return write_lines(tile_cols, tile_rows, tile);
    transposed.resize(at(tile.size()));
    const MatrixView<T> turned(transposed.data(), tile.cols, tile.rows);
    transpose<T>(tile, turned);
    write_lines(tile_rows, tile_cols, turned);
  };
  if (by_columns && on_host) {
    write_lines(cols, rows, X.local());
  } else if (by_columns) {
    for_each_tile(cols, rows, buffer_elements<T>,
                  [&](Range lines, Range along) { write_tile(along, lines); });
  } else {
    for_each_tile(rows, cols, buffer_elements<T>, write_tile);
  }
  file.finish();
}

/// Whether the rows of a file in C order would be written in pieces of less than a page, each by one call.
template <Scalar T>
bool has_short_pieces(const ConstDistMatrix<T>& X) {
  constexpr Index page = 4096;
  const Index parts = X.layout().cols.partition.parts();
  return parts > 1 && X.cols() * Index{sizeof(T)} < parts * page;
}

}  // namespace

template <Scalar T>
void write_matrix(const std::string& name, const ConstDistMatrix<T>& X, int dimensions,
                  const std::string& like, Access access) {
  ArrayName place;
  begin_with_file("write_matrix", name, X, [&](Agreement& agreement) {
    agreement.on("the dimensions", dimensions);
    agreement.on("the array with the attributes", like);
    require<UsageError>(dimensions == 1 || dimensions == 2, name, ": an array of ", dimensions,
                        " dimensions was asked for, but a matrix is written with two, or one");
    require<ShapeError>(dimensions == 2 || X.cols() == 1, name, ": a matrix of ", X.rows(), " x ", X.cols(),
                        " cannot be written as one-dimensional array; that needs a single column");
    place = parse_output_name(name);
  });
  ArrayHeader header{scalar_type_of<T>, {X.rows()}, !place.is_dataset()};
  if (dimensions == 2) header.sizes.push_back(X.cols());
  const bool by_columns = header.fortran_order || X.cols() == 1;
  const auto write = [&](const ConstDistMatrix<T>& from) {
    write_together(place, header, like, access, from, [&](const std::string& file, Index data_offset) {
      write_block(file, place.file, data_offset, by_columns, from.cols(), 0, from);
    });
  };
  if (by_columns || !has_short_pieces(X)) return write(X);
  DistMatrix<T> whole_rows = allocate_matrix<T>(X.grid(), row_blocks(*X.grid(), X.rows(), X.cols()));
  redistribute(X, whole_rows);
  write(whole_rows);
}

template <Scalar T>
void write_matrix(const std::string& name, const ConstDistMatrix<T>& X, int dimensions,
                  const std::string& like) {
  write_matrix(name, X, dimensions, like, Access::by_umask);
}

template <Scalar T>
MatrixWriter<T>::MatrixWriter(const std::string& name, std::shared_ptr<const ProcessGrid> grid, Index rows,
                              Index cols, int dimensions, const std::string& like)
    : grid_(std::move(grid)), rows_(rows), cols_(cols) {
  ArrayName place;
  agree(grid_, "MatrixWriter", [&](Agreement& agreement) {
    agreement.on("the file", name);
    agreement.on("the rows", rows);
    agreement.on("the columns", cols);
    agreement.on("the dimensions", dimensions);
    agreement.on("the array with the attributes", like);
    place = parse_output_name(name);
    require<ShapeError>(dimensions == 2 || (dimensions == 1 && cols == 1), name, ": a matrix of ", rows,
                        " x ", cols, " cannot be written as an array of ", dimensions, " dimensions");
  });
  name_ = place.file;
  if (!grid_->is_member()) return;
  ArrayHeader header{scalar_type_of<T>, {rows}, !place.is_dataset()};
  if (dimensions == 2) header.sizes.push_back(cols);
  by_columns_ = header.fortran_order || cols == 1;
  Communicator& comm = grid_->comm();
  attempt(comm, [&] {
    if (comm.rank() == 0) made_ = std::make_unique<NewArray>(place, header, like, Access::by_umask);
  });
  file_ = broadcast_text(comm, made_ ? made_->file() : std::string(), 0);
  std::array<Index, 1> data_offset{made_ ? made_->data_offset() : 0};
  comm.broadcast(data_offset, 0);
  data_offset_ = data_offset[0];
}
template <Scalar T>
MatrixWriter<T>::~MatrixWriter() = default;

template <Scalar T>
void MatrixWriter<T>::write(Index first, const ConstDistMatrix<T>& X) {
  const TraceRegion region("write file");
  begin_with_file<T>("write_matrix", name_, X, [&](Agreement& agreement) {
    agreement.on("the first column", first);
    require<ShapeError>(X.grid() == grid_ && X.rows() == rows_ && first >= 0 && first <= cols_ - X.cols(),
                        name_, " is ", rows_, " x ", cols_, ", but a matrix of ", X.rows(), " x ", X.cols(),
                        " is to be written there from column ", first, " on");
  });
  if (!grid_->is_member()) return;
  attempt(grid_->comm(), [&] {
    if (X.owned() && !X.local().empty())
      write_block(file_, name_, data_offset_, by_columns_, cols_, first, X);
  });
}

template <Scalar T>
void MatrixWriter<T>::finish() {
  if (!grid_->is_member()) return;
  attempt(grid_->comm(), [&] {
    if (made_) made_->take_name();
    made_.reset();
  });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                       \
  template class MatrixWriter<T>;                                                                     \
  template void write_matrix(const std::string&, const ConstDistMatrix<T>&, int, const std::string&); \
  template void write_matrix(const std::string&, const ConstDistMatrix<T>&, int, const std::string&, Access);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
