// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/npy.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "io/shared_file.hpp"
#include "io/tiles.hpp"

namespace gridlops {

namespace {

/// Reads blocks of the matrix in a file into the memory of a backend.
template <Scalar T>
class BlockReader {
 public:
  BlockReader(const std::string& path, const NpyHeader& header, Backend& backend)
      : file_(path), header_(header), backend_(backend) {}

  /// block ← rows × cols of the matrix, not empty.
  void read(Range rows, Range cols, MatrixView<T> block) {
    const bool by_columns = header_.fortran_order || header_.cols == 1;
    if (by_columns && on_host()) return read_lines(header_.rows, cols, rows, block);
    if (by_columns) {
      for_each_tile(cols, rows, buffer_elements<T>, [&](Range tile_cols, Range tile_rows) {
        const MatrixView<T> tile = view(lines_, tile_rows.size, tile_cols.size);
        read_lines(header_.rows, tile_cols, tile_rows, tile);
        upload(tile, block.block(relative_to(rows, tile_rows), relative_to(cols, tile_cols)));
      });
    } else {
      for_each_tile(rows, cols, buffer_elements<T>, [&](Range tile_rows, Range tile_cols) {
        const MatrixView<T> lines = view(lines_, tile_cols.size, tile_rows.size);
        read_lines(header_.cols, tile_rows, tile_cols, lines);
        const MatrixView<T> part = block.block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
        if (on_host()) {
          transpose<T>(lines, part);
        } else {
          const MatrixView<T> tile = view(transposed_, tile_rows.size, tile_cols.size);
          transpose<T>(lines, tile);
          upload(tile, part);
        }
      });
    }
  }

 private:
  bool on_host() const { return backend_.memory_space() == MemorySpace::host; }

  static MatrixView<T> view(std::vector<T>& buffer, Index rows, Index cols) {
    buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(rows * cols)));
    return {buffer.data(), rows, cols};
  }

  /// Column k of `to` ← the elements `along` of line lines.begin + k of the file.
  void read_lines(Index line_length, Range lines, Range along, MatrixView<T> to) const {
    constexpr Index size = sizeof(T);
    for_each_run(line_length, lines, along, to.stride, [&](Index in_file, Index in_memory, Index count) {
      file_.read(to.data + in_memory, count * size, header_.data_offset + in_file * size);
    });
  }

  void upload(MatrixView<const T> from, MatrixView<T> to) {
    for (Index j = 0; j < to.cols; ++j) {
      backend_.upload(from.column(j), to.column(j), to.rows * static_cast<Index>(sizeof(T)));
    }
  }

  InputFile file_;
  const NpyHeader& header_;
  Backend& backend_;
  std::vector<T> lines_, transposed_;
};

/// X's block ← the file's, tile by tile, whose elements are converted.
template <Scalar Stored, Scalar T>
void read_converted(const std::string& path, const NpyHeader& header, DistMatrix<T>& X) {
  const std::shared_ptr<Backend> host = make_host_backend();
  BlockReader<Stored> reader(path, header, *host);
  std::vector<Stored> stored;
  std::vector<T> converted;
  const Range rows = X.local_row_range(), cols = X.local_col_range();
  const auto read_tile = [&](Range tile_rows, Range tile_cols) {
    stored.resize(at(tile_rows.size * tile_cols.size));
    reader.read(tile_rows, tile_cols, MatrixView<Stored>(stored.data(), tile_rows.size, tile_cols.size));
    converted.assign(stored.begin(), stored.end());
    const MatrixView<T> block = X.local().block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
    for (Index j = 0; j < block.cols; ++j)
      X.grid()->backend()->upload(converted.data() + j * block.rows, block.column(j),
                                  block.rows * Index{sizeof(T)});
  };
  if (header.fortran_order || header.cols == 1) {
    for_each_tile(cols, rows, buffer_elements<T>, [&](Range lines, Range along) { read_tile(along, lines); });
  } else {
    for_each_tile(rows, cols, buffer_elements<T>, read_tile);
  }
}

}  // namespace

ScalarType common_type(ScalarType one, ScalarType other) {
  const auto has = [&](ScalarType type) { return one == type || other == type; };
  const bool is_complex = has(ScalarType::c64) || has(ScalarType::c128);
  const bool is_double = has(ScalarType::f64) || has(ScalarType::c128);
  if (is_complex) return is_double ? ScalarType::c128 : ScalarType::c64;
  return is_double ? ScalarType::f64 : ScalarType::f32;
}

NpyHeader read_npy_header(Communicator& comm, const std::string& path) {
  NpyHeader header;
  agree(comm, "read_npy_header", [&](Agreement& agreement) {
    agreement.on("the file", path);
    if (comm.rank() == 0) header = read_header_of(path, parse_npy_header);
  });
  std::array<Index, 6> fields{static_cast<Index>(header.type),
                              header.rows,
                              header.cols,
                              header.dimensions,
                              header.fortran_order,
                              header.data_offset};
  comm.broadcast(fields, 0);
  return {static_cast<ScalarType>(fields[0]), fields[1],      fields[2],
          static_cast<int>(fields[3]),        fields[4] != 0, fields[5]};
}

template <Scalar T>
void read_npy(const std::string& path, const NpyHeader& header, DistMatrix<T>& X) {
  const TraceRegion region("read file");
  begin_with_file<T>("read_npy", path, X, [&](Agreement&) {
    require<ShapeError>(common_type(header.type, scalar_type_of<T>) == scalar_type_of<T>, path,
                        " has elements of type ", name_of(header.type),
                        ", but they are to be read into a matrix of ", name_of(scalar_type_of<T>),
                        ", which cannot hold them all");
    require<ShapeError>(header.rows == X.rows() && header.cols == X.cols(), path, " is ", header.rows, " x ",
                        header.cols, ", but it is to be read into a matrix of ", X.rows(), " x ", X.cols());
  });
  if (!X.grid()->is_member()) return;
  attempt(X.grid()->comm(), [&] {
    if (X.local().empty()) return;
    with_scalar_type(header.type, [&]<Scalar Stored>() {
      if constexpr (std::same_as<Stored, T>) {
        BlockReader<T> reader(path, header, *X.grid()->backend());
        reader.read(X.local_row_range(), X.local_col_range(), X.local());
      } else if constexpr (sizeof(Real<Stored>) <= sizeof(Real<T>) &&
                           (is_complex<T> || !is_complex<Stored>)) {
        read_converted<Stored>(path, header, X);
      }
    });
  });
}

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
void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions, Access access) {
  begin_with_file("write_npy", path, X, [&](Agreement& agreement) {
    agreement.on("the dimensions", dimensions);
    require<UsageError>(dimensions == 1 || dimensions == 2, path, ": an array of ", dimensions,
                        " dimensions was asked for, but a matrix is written with two, or one");
    require<ShapeError>(dimensions == 2 || X.cols() == 1, path, ": a matrix of ", X.rows(), " x ", X.cols(),
                        " cannot be written as one-dimensional array; that needs a single column");
  });
  const std::string start = npy_header_text(NpyHeader{.type = scalar_type_of<T>,
                                                      .rows = X.rows(),
                                                      .cols = X.cols(),
                                                      .dimensions = dimensions,
                                                      .fortran_order = true});
  write_together(path, access, start, X,
                 [&](const std::string& name) { write_block(name, static_cast<Index>(start.size()), X); });
}

template <Scalar T>
void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions) {
  write_npy(path, X, dimensions, Access::by_umask);
}

#define GRIDLOPS_INSTANTIATE(T)                                                 \
  template void read_npy(const std::string&, const NpyHeader&, DistMatrix<T>&); \
  template void write_npy(const std::string&, const ConstDistMatrix<T>&, int);  \
  template void write_npy(const std::string&, const ConstDistMatrix<T>&, int, Access);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
