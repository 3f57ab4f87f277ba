// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/hdf5.hpp"
#include "io/npy_header.hpp"
#include "io/shared_file.hpp"

namespace gridlops {

namespace {

/// The sizes of the array in the file of a matrix with so many columns of arrays.
std::vector<Index> sizes_in_file(const Dims& dims, Index columns) {
  std::vector<Index> sizes = dims.sizes();
  if (columns != 1) sizes.insert(sizes.begin(), columns);
  return sizes;
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

/// Calls work(column, box) for each column of this rank's block, with the box of it in the file.
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
  std::vector<Index> sizes;
  Box whole;
  for (const Range& range : box) {
    sizes.push_back(range.size);
    whole.push_back({0, range.size});
  }
  for_each_line(sizes, whole, true, [&](Index begin, Index in_memory, Index step, Index count) {
    for (Index k = 0; k < count; ++k) to[at(in_memory + k * step)] = from[at(begin + k)];
  });
}

/// Calls work(j, column) for each column of this rank's block, read into host memory.
template <Scalar T, class Function>
void read_dataset_columns(const std::string& name, const ArrayHeader& header, const Dims& dims,
                          const ConstDistMatrix<T>& X, Function&& work) {
  const std::unique_ptr<Dataset> dataset = open_dataset(parse_array_name(name));
  require<InputError>(dataset->header() == header, name,
                      ": is another dataset than it was before; was it changed meanwhile?");
  std::vector<T> column(at(X.local().rows)), in_file(header.fortran_order ? column.size() : 0);
  for_each_column<T>(X, dims, [&](Index j, const Box& box) {
    const Index line = header.fortran_order ? box.front().size : box.back().size;
    dataset->read(box, header.fortran_order ? in_file.data() : column.data(), line);
    if (header.fortran_order) reorder(box, in_file, column);
    work(j, column);
  });
}

/// The same for elements that lie in the file as in memory.
template <Scalar T, class Function>
void read_plain_columns(const std::string& name, const ArrayHeader& header, const Dims& dims,
                        const ConstDistMatrix<T>& X, Function&& work) {
  constexpr Index size = sizeof(T);
  const std::vector<Index> sizes = sizes_in_file(dims, X.cols());
  const InputFile file(place_of_array(name).file);
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
    work(j, column);
  });
}

}  // namespace

template <Scalar T>
void read_array(const std::string& name, const ArrayHeader& header, const Dims& dims, DistMatrix<T>& X) {
  const TraceRegion region("read file");
  begin_with_file<T>("read_array", name, X, [&](Agreement& agreement) {
    describe_dims<T>(agreement, name, dims, X);
    require<ShapeError>(header.type == scalar_type_of<T>, name, " has elements of type ",
                        name_of(header.type), ", but they are to be read into arrays of ",
                        name_of(scalar_type_of<T>));
    require<ShapeError>(header.sizes == sizes_in_file(dims, X.cols()), name,
                        " has another shape than an array of ", dims.describe(), " with ", X.cols(),
                        " right-hand sides");
  });
  if (!X.grid()->is_member()) return;
  attempt(X.grid()->comm(), [&] {
    if (X.local().empty()) return;
    const auto upload = [&](Index j, const std::vector<T>& column) {
      X.grid()->backend()->upload(column.data(), X.local().column(j), X.local().rows * Index{sizeof(T)});
    };
    if (header.data_offset < 0) return read_dataset_columns<T>(name, header, dims, X, upload);
    read_plain_columns<T>(name, header, dims, X, upload);
  });
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
                   OutputFile file = OutputFile::open(path);
                   std::vector<T> column(at(X.local().rows));
                   for_each_column(X, dims, [&](Index j, const Box& box) {
                     X.grid()->backend()->download(X.local().column(j), column.data(), X.local().rows * size);
                     for_each_line(
                         sizes, box, false, [&](Index in_file, Index in_memory, Index, Index count) {
                           file.write(column.data() + in_memory, count * size, data_offset + in_file * size);
                         });
                   });
                   file.finish();
                 });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template void read_array(const std::string&, const ArrayHeader&, const Dims&, DistMatrix<T>&); \
  template void write_array(const std::string&, const Dims&, const ConstDistMatrix<T>&, const std::string&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
