// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/array_file.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <memory>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "io/files/file.hpp"
#include "io/files/shared_file.hpp"
#include "io/formats/hdf5.hpp"
#include "io/formats/npy_header.hpp"
#include "io/matrix_reader.hpp"
#include "io/tiles.hpp"

namespace gridlops {

namespace {

/// Whether columns are contiguous in the file. A single one always is.
bool by_columns(const MatrixHeader& header) { return header.fortran_order || header.cols == 1; }

/// The lines of a matrix in a file: its columns if they are contiguous there, otherwise its rows.
class Lines {
 public:
  virtual ~Lines() = default;

  /// Line k of memory, which begins `stride` elements after the one before, ← the elements `along` of line
  /// lines.begin + k of the file.
  virtual void read(Range lines, Range along, void* to, Index stride) const = 0;

  Cells cells, cells_along;
};

/// Lines whose elements lie in the file as in memory, one line after the other.
class PlainLines : public Lines {
 public:
  PlainLines(const std::string& file, const MatrixHeader& header)
      : file_(file), header_(header), length_(by_columns(header) ? header.rows : header.cols) {}

  void read(Range lines, Range along, void* to, Index stride) const override {
    const Index size = size_of(header_.type);
    if (along.size < length_ && length_ * size <= short_line)
      return read_whole_lines(lines, along, to, stride);
    for_each_run(length_, lines, along, stride, [&](Index in_file, Index in_memory, Index count) {
      file_.read(static_cast<char*>(to) + in_memory * size, count * size,
                 header_.data_offset + in_file * size);
    });
  }

 private:
  /// A call for each piece of such a line would take longer than reading all of it, in bytes.
  static constexpr Index short_line = Index{16} << 10;

  void read_whole_lines(Range lines, Range along, void* to, Index stride) const {
    const Index size = size_of(header_.type), line = length_ * size;
    const Index at_once = std::max<Index>((Index{1} << 20) / line, 1);
    std::vector<char> buffer(at(std::min(at_once, lines.size) * line));
    for (Index first = 0; first < lines.size; first += at_once) {
      const Index count = std::min(at_once, lines.size - first);
      file_.read(buffer.data(), count * line, header_.data_offset + (lines.begin + first) * line);
      for (Index k = 0; k < count; ++k)
        std::memcpy(static_cast<char*>(to) + (first + k) * stride * size,
                    buffer.data() + k * line + along.begin * size, at(along.size * size));
    }
  }

  InputFile file_;
  const MatrixHeader& header_;
  Index length_;
};

/// Lines that HDF5 reads.
class DatasetLines : public Lines {
 public:
  DatasetLines(const std::string& name, const MatrixHeader& header)
      : dataset_(open_dataset(parse_array_name(name))), header_(header) {
    require<InputError>(matrix_header(dataset_->header(), name) == header, name,
                        ": is another dataset than it was before; was it changed meanwhile?");
    const auto& chunks = dataset_->chunks();
    cells = header.dimensions == 1 ? Cells() : chunks[by_columns(header) ? 1 : 0];
    cells_along = chunks[header.dimensions == 1 || by_columns(header) ? 0 : 1];
  }

  void read(Range lines, Range along, void* to, Index stride) const override {
    const bool columns = by_columns(header_);
    Box box{columns ? along : lines};
    if (header_.dimensions == 2) box.push_back(columns ? lines : along);
    // A single column in C order has a line for each row.
    dataset_->read(box, to, columns && !header_.fortran_order && header_.dimensions == 2 ? 1 : stride);
  }

 private:
  std::unique_ptr<Dataset> dataset_;
  const MatrixHeader& header_;
};

std::unique_ptr<Lines> open_lines(const std::string& name, const MatrixHeader& header) {
  if (header.data_offset < 0) return std::make_unique<DatasetLines>(name, header);
  return std::make_unique<PlainLines>(place_of_array(name).file, header);
}

/// Reads blocks of the matrix in a file into the memory of a backend.
template <Scalar T>
class BlockReader {
 public:
  BlockReader(const std::string& name, const MatrixHeader& header, Backend& backend)
      : lines_(open_lines(name, header)), by_columns_(by_columns(header)), backend_(backend) {}

  /// block ← rows × cols of the matrix, not empty.
  void read(Range rows, Range cols, MatrixView<T> block) {
    const bool on_host = backend_.memory_space() == MemorySpace::host;
    if (by_columns_ && on_host) return lines_->read(cols, rows, block.data, block.stride);
    if (by_columns_) {
      for_each_tile(cols, rows, [&](Range tile_cols, Range tile_rows) {
        const MatrixView<T> tile = view(buffer_, tile_rows.size, tile_cols.size);
        lines_->read(tile_cols, tile_rows, tile.data, tile.stride);
        upload(tile, block.block(relative_to(rows, tile_rows), relative_to(cols, tile_cols)));
      });
    } else {
      for_each_tile(rows, cols, [&](Range tile_rows, Range tile_cols) {
        const MatrixView<T> tile_lines = view(buffer_, tile_cols.size, tile_rows.size);
        lines_->read(tile_rows, tile_cols, tile_lines.data, tile_lines.stride);
        const MatrixView<T> part = block.block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
        if (on_host) {
          transpose<T>(tile_lines, part);
        } else {
          const MatrixView<T> tile = view(transposed_, tile_rows.size, tile_cols.size);
          transpose<T>(tile_lines, tile);
          upload(tile, part);
        }
      });
    }
  }

  /// Calls work(lines, along) for the tiles of a block, each as large as a buffer.
  template <class Function>
  void for_each_tile(Range lines, Range along, Function&& work) const {
    gridlops::for_each_tile(lines, along, buffer_elements<T>, work, lines_->cells, lines_->cells_along);
  }

 private:
  static MatrixView<T> view(std::vector<T>& buffer, Index rows, Index cols) {
    buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(rows * cols)));
    return {buffer.data(), rows, cols};
  }

  void upload(MatrixView<const T> from, MatrixView<T> to) {
    for (Index j = 0; j < to.cols; ++j) {
      backend_.upload(from.column(j), to.column(j), to.rows * static_cast<Index>(sizeof(T)));
    }
  }

  std::unique_ptr<Lines> lines_;
  const bool by_columns_;
  Backend& backend_;
  std::vector<T> buffer_, transposed_;
};

/// X's block ← the file's from column `first` on, tile by tile, whose elements are converted.
template <Scalar Stored, Scalar T>
void read_converted(const std::string& name, const MatrixHeader& header, Index first, DistMatrix<T>& X) {
  const std::shared_ptr<Backend> host = make_host_backend();
  BlockReader<Stored> reader(name, header, *host);
  std::vector<Stored> stored;
  std::vector<T> converted;
  const Range rows = X.local_row_range(), cols = cols_in_file(X, first);
  const auto read_tile = [&](Range tile_rows, Range tile_cols) {
    stored.resize(at(tile_rows.size * tile_cols.size));
    reader.read(tile_rows, tile_cols, MatrixView<Stored>(stored.data(), tile_rows.size, tile_cols.size));
    converted.assign(stored.begin(), stored.end());
    const MatrixView<T> block = X.local().block(relative_to(rows, tile_rows), relative_to(cols, tile_cols));
    for (Index j = 0; j < block.cols; ++j)
      X.grid()->backend()->upload(converted.data() + j * block.rows, block.column(j),
                                  block.rows * Index{sizeof(T)});
  };
  if (by_columns(header)) {
    reader.for_each_tile(cols, rows, [&](Range lines, Range along) { read_tile(along, lines); });
  } else {
    reader.for_each_tile(rows, cols, read_tile);
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

MatrixHeader read_matrix_header(Communicator& comm, const std::string& name) {
  MatrixHeader header;
  agree(comm, "read_matrix_header", [&](Agreement& agreement) {
    agreement.on("the file", name);
    if (comm.rank() != 0) return;
    const ArrayName place = parse_array_name(name);
    header = place.is_dataset() ? matrix_header(open_dataset(place)->header(), name)
                                : read_header_of(name, parse_npy_header);
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
MatrixReader<T>::MatrixReader(const std::string& name, const MatrixHeader& header)
    : by_columns_(gridlops::by_columns(header)) {
  require<ShapeError>(common_type(header.type, scalar_type_of<T>) == scalar_type_of<T>, name,
                      " has elements of type ", name_of(header.type), ", but it is to be read as ",
                      name_of(scalar_type_of<T>), ", which cannot hold them all");
  with_scalar_type(header.type, [&]<Scalar Stored>() {
    if constexpr (sizeof(Real<Stored>) <= sizeof(Real<T>) && (is_complex<T> || !is_complex<Stored>)) {
      struct Open {
        MatrixHeader header;
        std::shared_ptr<Backend> host = make_host_backend();
        std::vector<Stored> stored{};
      };
      const auto open = std::make_shared<Open>(Open{header});
      const auto reader = std::make_shared<BlockReader<Stored>>(name, open->header, *open->host);
      read_ = [open, reader](Range rows, Range cols, MatrixView<T> block) {
        if constexpr (std::same_as<Stored, T>) {
          reader->read(rows, cols, block);
        } else {
          open->stored.resize(at(block.size()));
          reader->read(rows, cols, MatrixView<Stored>(open->stored.data(), block.rows, block.cols));
          for (Index j = 0; j < block.cols; ++j)
            std::copy_n(open->stored.data() + j * block.rows, block.rows, block.column(j));
        }
      };
    }
  });
}

namespace {

/// X ← the matrix in the file, or with `some` its columns from `first` on.
template <Scalar T>
void read_from(const std::string& name, const MatrixHeader& header, bool some, Index first,
               DistMatrix<T>& X) {
  const TraceRegion region("read file");
  begin_with_file<T>("read_matrix", name, X, [&](Agreement& agreement) {
    agreement.on("the first column", first);
    require<ShapeError>(common_type(header.type, scalar_type_of<T>) == scalar_type_of<T>, name,
                        " has elements of type ", name_of(header.type),
                        ", but they are to be read into a matrix of ", name_of(scalar_type_of<T>),
                        ", which cannot hold them all");
    require<ShapeError>(header.rows == X.rows() && (some || header.cols == X.cols()), name, " is ",
                        header.rows, " x ", header.cols, ", but it is to be read into a matrix of ", X.rows(),
                        " x ", X.cols());
    require<ShapeError>(first >= 0 && first <= header.cols - X.cols(), name, " has ", header.cols,
                        " columns, but ", X.cols(), " from column ", first, " on are to be read");
  });
  if (!X.grid()->is_member()) return;
  attempt(X.grid()->comm(), [&] {
    if (X.local().empty()) return;
    with_scalar_type(header.type, [&]<Scalar Stored>() {
      if constexpr (std::same_as<Stored, T>) {
        BlockReader<T> reader(name, header, *X.grid()->backend());
        reader.read(X.local_row_range(), cols_in_file(X, first), X.local());
      } else if constexpr (sizeof(Real<Stored>) <= sizeof(Real<T>) &&
                           (is_complex<T> || !is_complex<Stored>)) {
        read_converted<Stored>(name, header, first, X);
      }
    });
  });
}

}  // namespace

template <Scalar T>
void read_matrix(const std::string& name, const MatrixHeader& header, DistMatrix<T>& X) {
  read_from(name, header, false, 0, X);
}
template <Scalar T>
void read_columns(const std::string& name, const MatrixHeader& header, Index first, DistMatrix<T>& X) {
  read_from(name, header, true, first, X);
}

#define GRIDLOPS_INSTANTIATE(T)                                                       \
  template class MatrixReader<T>;                                                     \
  template void read_matrix(const std::string&, const MatrixHeader&, DistMatrix<T>&); \
  template void read_columns(const std::string&, const MatrixHeader&, Index, DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
