// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/npy.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "io/tiles.hpp"

namespace gridlops {

namespace {

template <class Parse>
auto read_header_of(const std::string& path, Parse&& parse) {
  const InputFile file(path);
  std::vector<char> start(static_cast<std::size_t>(std::min(file.size(), npy_header_limit)));
  file.read(start.data(), static_cast<Index>(start.size()), 0);
  return parse(start, file.size(), path);
}

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

/// Makes all ranks agree on the file and the matrix before they read or write it.
template <Scalar T>
void begin_with_file(const char* operation, const std::string& path, const ConstDistMatrix<T>& X,
                     const std::function<void(Agreement&)>& check) {
  agree(X.grid(), operation, [&](Agreement& agreement) {
    agreement.on("the file", path);
    describe_matrix(agreement, "the matrix", X);
    check(agreement);
  });
}

/// X's block ← the file's, tile by tile, converting the elements.
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

/// Makes a file that begins with `start` and has room for X (collective over the grid of X). The owner of
/// each block writes it by write_block(name).
template <Scalar T, class WriteBlock>
void write_together(const std::string& path, Access access, const std::string& start,
                    const ConstDistMatrix<T>& X, WriteBlock&& write_block) {
  const TraceRegion region("write file");
  if (!X.grid()->is_member()) return;
  Communicator& comm = X.grid()->comm();
  std::optional<TemporaryFile> temporary;  // on rank 0
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    temporary.emplace(path, access);
    temporary->prepare(start, static_cast<Index>(start.size()) + X.rows() * X.cols() * Index{sizeof(T)});
  });
  const std::string name = broadcast_text(comm, temporary ? temporary->name() : std::string(), 0);
  attempt(comm, [&] {
    if (X.owned() && !X.local().empty()) write_block(name);
  });
  attempt(comm, [&] {
    if (temporary) temporary->take_name();
  });
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

namespace {

/// The sizes of the array in the file of a matrix with this many columns of arrays.
std::vector<Index> sizes_in_file(const Dims& dims, Index columns) {
  std::vector<Index> sizes = dims.sizes();
  if (columns != 1) sizes.insert(sizes.begin(), columns);
  return sizes;
}

/// Calls work(in_file, in_memory, step, count), all in elements, for the lines of an array's box that are
/// contiguous in the file. In memory, where the box is in C order, `step` separates the elements of a line.
template <class Function>
void for_each_line(const std::vector<Index>& sizes, const Box& box, bool fortran_order, Function&& work) {
  const Index elements = size_of(box);
  if (elements == 0) return;
  const std::size_t count = sizes.size();
  // In C order, the last dimensions that the box covers completely form one line together.
  std::size_t first = fortran_order ? 0 : count - 1;
  Index length = box[first].size;
  while (!fortran_order && first > 0 && box[first].size == sizes[first]) length *= box[--first].size;
  const Index step = fortran_order ? elements / length : 1;
  std::vector<Index> place(count);
  for (Index line = 0; line < elements / length; ++line) {
    Index in_file = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t d = fortran_order ? count - 1 - k : k;
      in_file = in_file * sizes[d] + box[d].begin + place[d];
    }
    work(in_file, fortran_order ? line : line * length, step, length);
    // Moves to the next line in memory order.
    for (std::size_t d = fortran_order ? count : first; d-- > (fortran_order ? 1 : 0);) {
      if (++place[d] < box[d].size) break;
      place[d] = 0;
    }
  }
}

/// Calls work(column, box) for each column of this rank's block, with its box in the file.
template <Scalar T, class Function>
void for_each_column(const ConstDistMatrix<T>& X, const Dims& dims, Function&& work) {
  const Cut& rows = X.layout().rows;
  const Box own = dims.block(X.grid()->my_part(rows.axis));
  for (Index j = 0; j < X.local().cols; ++j) {
    Box box = own;
    if (X.cols() != 1) box.insert(box.begin(), {X.local_col_range().begin + j, 1});
    work(j, box);
  }
}

template <Scalar T>
void describe_dims(Agreement& agreement, const std::string& path, const Dims& dims,
                   const ConstDistMatrix<T>& X) {
  agreement.on("the array", dims.describe());
  require<ShapeError>(dims.rows() == X.layout().rows.partition, path, ": an array of ", dims.describe(),
                      " does not fit a matrix that is ", X.layout().describe(),
                      "; the rows must have a part for each block of the array");
}

}  // namespace

NpyArrayHeader read_npy_array_header(Communicator& comm, const std::string& path) {
  NpyArrayHeader header;
  agree(comm, "read_npy_array_header", [&](Agreement& agreement) {
    agreement.on("the file", path);
    if (comm.rank() == 0) header = read_header_of(path, parse_npy_array_header);
  });
  std::vector<Index> fields{static_cast<Index>(header.type), header.fortran_order, header.data_offset,
                            static_cast<Index>(header.sizes.size())};
  fields.insert(fields.end(), header.sizes.begin(), header.sizes.end());
  fields.resize(4 + Dims::most);
  comm.broadcast(fields, 0);
  return {static_cast<ScalarType>(fields[0]),
          {fields.begin() + 4, fields.begin() + 4 + fields[3]},
          fields[1] != 0,
          fields[2]};
}

template <Scalar T>
void read_npy_array(const std::string& path, const NpyArrayHeader& header, const Dims& dims,
                    DistMatrix<T>& X) {
  const TraceRegion region("read file");
  const std::vector<Index> sizes = sizes_in_file(dims, X.cols());
  begin_with_file<T>("read_npy_array", path, X, [&](Agreement& agreement) {
    describe_dims<T>(agreement, path, dims, X);
    require<ShapeError>(header.type == scalar_type_of<T>, path, " has elements of type ",
                        name_of(header.type), ", but they are to be read into arrays of ",
                        name_of(scalar_type_of<T>));
    require<ShapeError>(header.sizes == sizes, path, " has another shape than an array of ", dims.describe(),
                        " with ", X.cols(), " right-hand sides");
  });
  if (!X.grid()->is_member()) return;
  constexpr Index size = sizeof(T);
  attempt(X.grid()->comm(), [&] {
    if (X.local().empty()) return;
    const InputFile file(path);
    Backend& backend = *X.grid()->backend();
    std::vector<T> column(at(X.local().rows)), scattered;
    for_each_column<T>(X, dims, [&](Index j, const Box& box) {
      for_each_line(sizes, box, header.fortran_order,
                    [&](Index in_file, Index in_memory, Index step, Index count) {
                      const Index offset = header.data_offset + in_file * size;
                      if (step == 1) return file.read(column.data() + in_memory, count * size, offset);
                      scattered.resize(at(count));
                      file.read(scattered.data(), count * size, offset);
                      for (Index k = 0; k < count; ++k) column[at(in_memory + k * step)] = scattered[at(k)];
                    });
      backend.upload(column.data(), X.local().column(j), X.local().rows * size);
    });
  });
}

template <Scalar T>
void write_npy_array(const std::string& path, const Dims& dims, const ConstDistMatrix<T>& X) {
  const std::vector<Index> sizes = sizes_in_file(dims, X.cols());
  begin_with_file("write_npy_array", path, X, [&](Agreement& agreement) {
    describe_dims(agreement, path, dims, X);
    require<ShapeError>(!sizes.empty() && sizes.size() <= Dims::most, path, ": an array of ", dims.describe(),
                        " with ", X.cols(), " right-hand sides would have ", sizes.size(),
                        " dimensions; one to five are possible");
  });
  const std::string start = npy_header_text(NpyArrayHeader{scalar_type_of<T>, sizes, false, 0});
  constexpr Index size = sizeof(T);
  write_together(path, Access::by_umask, start, X, [&](const std::string& name) {
    OutputFile file = OutputFile::open(name);
    std::vector<T> column(at(X.local().rows));
    for_each_column(X, dims, [&](Index j, const Box& box) {
      X.grid()->backend()->download(X.local().column(j), column.data(), X.local().rows * size);
      for_each_line(sizes, box, false, [&](Index in_file, Index in_memory, Index, Index count) {
        file.write(column.data() + in_memory, count * size,
                   static_cast<Index>(start.size()) + in_file * size);
      });
    });
    file.finish();
  });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                         \
  template void read_npy(const std::string&, const NpyHeader&, DistMatrix<T>&);                         \
  template void write_npy(const std::string&, const ConstDistMatrix<T>&, int);                          \
  template void write_npy(const std::string&, const ConstDistMatrix<T>&, int, Access);                  \
  template void read_npy_array(const std::string&, const NpyArrayHeader&, const Dims&, DistMatrix<T>&); \
  template void write_npy_array(const std::string&, const Dims&, const ConstDistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
