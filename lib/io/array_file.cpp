// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/files/shared_file.hpp"
#include "io/formats/hdf5.hpp"
#include "io/formats/npy_header.hpp"

namespace gridlops {

namespace {

/// The sizes of the array in the file of a matrix with this many columns of arrays.
std::vector<Index> sizes_in_file(const Dims& dims, Index columns) {
  std::vector<Index> sizes = dims.sizes();
  if (columns != 1) sizes.push_back(columns);
  return sizes;
}

std::vector<Index> sizes_of(const Box& box) {
  std::vector<Index> sizes;
  for (const Range& range : box) sizes.push_back(range.size);
  return sizes;
}

/// The whole array of these sizes.
Box box_of(const std::vector<Index>& sizes) {
  Box box;
  for (const Index size : sizes) box.push_back({0, size});
  return box;
}

/// Calls work(in_file, in_memory, step, count), all in elements, for the lines of a box of an array that are
/// contiguous in its file. In memory, where the box lies in C order, a line has steps.
template <class Function>
void for_each_line(const std::vector<Index>& sizes, const Box& box, bool fortran_order, Function&& work) {
  const Index elements = size_of(box);
  if (elements == 0) return;
  const std::size_t count = sizes.size();
  // In C order the last dimensions make one line, as far as the box has all of them.
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
    // The next line in the order of memory.
    for (std::size_t d = fortran_order ? count : first; d-- > (fortran_order ? 1 : 0);) {
      if (++place[d] < box[d].size) break;
      place[d] = 0;
    }
  }
}

/// Calls work(piece) for boxes that make up a box of an array in C order, one after the other: a dimension is
/// cut only where those before it have one index. Each has about as many elements as a buffer, or up to four
/// times as many for a whole cell along the dimension that is cut last. Only the first `dims` dimensions are
/// cut.
template <Scalar T>
void for_each_piece(Box box, std::size_t dims, const std::vector<Cells>& cells,
                    const std::function<void(const Box&)>& work, std::size_t dim = 0) {
  const Index elements = size_of(box);
  if (elements <= buffer_elements<T> || dim == dims) return work(box);
  const Range range = box[dim];
  const Index each = elements / range.size;
  for (Index begin = range.begin, end = begin; begin < range.end(); begin = end) {
    if (each > buffer_elements<T>) {
      end = begin + 1;
      box[dim] = {begin, 1};
      for_each_piece<T>(box, dims, cells, work, dim + 1);
    } else {
      end = std::min(end_of_piece(range, begin, buffer_elements<T> / each, cells[dim]),
                     begin + 4 * buffer_elements<T> / each);
      box[dim] = {begin, end - begin};
      work(box);
    }
  }
}

/// The box of this rank's block in the file: of its part of the array, with its columns.
template <Scalar T>
Box box_in_file(const ConstDistMatrix<T>& X, const Dims& dims) {
  Box box = dims.block(X.grid()->my_part(X.layout().rows.axis));
  if (X.cols() != 1) box.push_back(X.local_col_range());
  return box;
}

template <Scalar T>
void describe_dims(Agreement& agreement, const std::string& path, const Dims& dims,
                   const ConstDistMatrix<T>& X) {
  agreement.on("the array", dims.describe());
  require<ShapeError>(dims.rows() == X.layout().rows.partition, path, ": an array of ", dims.describe(),
                      " does not fit a matrix that is ", X.layout().describe(),
                      "; the rows must have a part for each block of the array");
}

/// Returns the part as text.
std::string describe_part(Agreement& agreement, const std::string& path, const ArrayHeader& header,
                          const Box& part) {
  std::string ranges;
  bool lies_within = part.size() == header.sizes.size();
  for (std::size_t d = 0; d < part.size(); ++d) {
    const auto [begin, size] = part[d];
    ranges += message(d > 0 ? "," : "", begin, ":", begin + size);
    lies_within = lies_within && 0 <= begin && 0 <= size && begin <= header.sizes[d] - size;
  }
  agreement.on("the part", ranges);
  require<ShapeError>(lies_within, path, " has no part ", ranges, "; it is an array of ",
                      Dims::cut_along(header.sizes, 0, 1).describe());
  return ranges;
}

}  // namespace

ArrayHeader read_array_header(Communicator& comm, const std::string& name) {
  ArrayHeader header;
  agree(comm, "read_array_header", [&](Agreement& agreement) {
    agreement.on("the file", name);
    if (comm.rank() != 0) return;
    const ArrayName place = parse_array_name(name);
    header =
        place.is_dataset() ? open_dataset(place)->header() : read_header_of(name, parse_npy_array_header);
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

namespace {

/// Puts elements into the order of C that lie in a box of an array, its first dimension contiguous.
template <Scalar T>
void reorder(const Box& box, const std::vector<T>& from, std::vector<T>& to) {
  for_each_line(sizes_of(box), box_of(sizes_of(box)), true,
                [&](Index begin, Index in_memory, Index step, Index count) {
                  for (Index k = 0; k < count; ++k) to[at(in_memory + k * step)] = from[at(begin + k)];
                });
}

/// Reads boxes of one file, in C order.
template <Scalar T>
class ArrayReader {
 public:
  ArrayReader(const std::string& name, const ArrayHeader& header)
      : header_(header), cells_(header.sizes.size()) {
    if (header.data_offset >= 0) {
      file_.emplace(place_of_array(name).file);
      return;
    }
    dataset_ = open_dataset(parse_array_name(name));
    require<InputError>(dataset_->header() == header, name,
                        ": is another dataset than it was before; was it changed meanwhile?");
    cells_ = dataset_->chunks();
  }

  const std::vector<Cells>& cells() const { return cells_; }

  void read(const Box& box, std::vector<T>& to) {
    to.resize(at(size_of(box)));
    if (dataset_ == nullptr) return read_plain(box, to);
    if (header_.fortran_order) in_file_.resize(to.size());
    std::vector<T>& target = header_.fortran_order ? in_file_ : to;
    dataset_->read(box, target.data(), header_.fortran_order ? box.front().size : box.back().size);
    if (header_.fortran_order) reorder(box, in_file_, to);
  }

 private:
  void read_plain(const Box& box, std::vector<T>& to) {
    constexpr Index size = sizeof(T);
    for_each_line(header_.sizes, box, header_.fortran_order,
                  [&](Index in_file, Index in_memory, Index step, Index count) {
                    const Index offset = header_.data_offset + in_file * size;
                    if (step == 1) return file_->read(to.data() + in_memory, count * size, offset);
                    in_file_.resize(at(count));
                    file_->read(in_file_.data(), count * size, offset);
                    for (Index k = 0; k < count; ++k) to[at(in_memory + k * step)] = in_file_[at(k)];
                  });
  }

  const ArrayHeader& header_;
  std::optional<InputFile> file_;
  std::unique_ptr<Dataset> dataset_;
  std::vector<Cells> cells_;
  std::vector<T> in_file_;
};

}  // namespace

template <Scalar T>
void read_array(const std::string& name, const ArrayHeader& header, const Box& part, const Dims& dims,
                DistMatrix<T>& X) {
  const TraceRegion region("read file");
  begin_with_file<T>("read_array", name, X, [&](Agreement& agreement) {
    describe_dims<T>(agreement, name, dims, X);
    require<ShapeError>(header.type == scalar_type_of<T>, name, " has elements of type ",
                        name_of(header.type), ", but they are to be read into arrays of ",
                        name_of(scalar_type_of<T>));
    const std::string ranges = describe_part(agreement, name, header, part);
    require<ShapeError>(sizes_of(part) == sizes_in_file(dims, X.cols()), name, "@", ranges,
                        " has another shape than an array of ", dims.describe(), " with ", X.cols(),
                        " right-hand sides");
  });
  if (!X.grid()->is_member()) return;
  attempt(X.grid()->comm(), [&] {
    const MatrixView<T> block = X.local();
    if (block.empty()) return;
    ArrayReader<T> reader(name, header);
    std::vector<T> rows, column;
    Index first = 0;
    Box own = box_in_file<T>(X, dims);
    for (std::size_t d = 0; d < own.size(); ++d) own[d].begin += part[d].begin;
    for_each_piece<T>(own, at(dims.count()), reader.cells(), [&](const Box& piece) {
      reader.read(piece, rows);
      const Index count = size_of(piece) / block.cols;
      column.resize(at(count));
      for (Index j = 0; j < block.cols; ++j) {
        for (Index i = 0; i < count; ++i) column[at(i)] = rows[at(i * block.cols + j)];
        X.grid()->backend()->upload(column.data(), block.column(j) + first, count * Index{sizeof(T)});
      }
      first += count;
    });
  });
}

template <Scalar T>
void read_array(const std::string& name, const ArrayHeader& header, const Dims& dims, DistMatrix<T>& X) {
  read_array(name, header, box_of(header.sizes), dims, X);
}

template <Scalar T>
void write_array(const std::string& name, const Dims& dims, const ConstDistMatrix<T>& X,
                 const std::string& like) {
  const std::vector<Index> sizes = sizes_in_file(dims, X.cols());
  ArrayName place;
  begin_with_file("write_array", name, X, [&](Agreement& agreement) {
    describe_dims(agreement, name, dims, X);
    agreement.on("the array with the attributes", like);
    require<ShapeError>(!sizes.empty() && sizes.size() <= Dims::most, name, ": an array of ", dims.describe(),
                        " with ", X.cols(), " right-hand sides would have ", sizes.size(),
                        " dimensions; one to five are possible");
    place = parse_output_name(name);
  });
  constexpr Index size = sizeof(T);
  write_together(place, ArrayHeader{scalar_type_of<T>, sizes}, like, Access::by_umask, X,
                 [&](const std::string& path, Index data_offset) {
                   OutputFile file = OutputFile::open(path, place.file);
                   const MatrixView<const T> block = X.local();
                   std::vector<T> rows, column;
                   Index first = 0;
                   const std::vector<Cells> cells(sizes.size());
                   for_each_piece<T>(box_in_file(X, dims), at(dims.count()), cells, [&](const Box& piece) {
                     const Index count = size_of(piece) / block.cols;
                     rows.resize(at(size_of(piece)));
                     column.resize(at(count));
                     for (Index j = 0; j < block.cols; ++j) {
                       X.grid()->backend()->download(block.column(j) + first, column.data(), count * size);
                       for (Index i = 0; i < count; ++i) rows[at(i * block.cols + j)] = column[at(i)];
                     }
                     for_each_line(
                         sizes, piece, false, [&](Index in_file, Index in_memory, Index, Index length) {
                           file.write(rows.data() + in_memory, length * size, data_offset + in_file * size);
                         });
                     first += count;
                   });
                   file.finish();
                 });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template void read_array(const std::string&, const ArrayHeader&, const Box&, const Dims&, DistMatrix<T>&); \
  template void read_array(const std::string&, const ArrayHeader&, const Dims&, DistMatrix<T>&);             \
  template void write_array(const std::string&, const Dims&, const ConstDistMatrix<T>&, const std::string&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
