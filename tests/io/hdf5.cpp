// SPDX-License-Identifier: BSD-3-Clause
// Datasets in HDF5 files, of every kind of storage, written and read by ranks that hold parts of them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"
#include "hdf5/handles.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"
#include "io/matrix_boxes.hpp"
#include "io/npy_files.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using h5::Handle;

struct Size {
  Index rows, cols;
};
constexpr Size sizes[] = {{0, 5}, {5, 0}, {1, 1}, {7, 3}, {2, 11}, {13, 1}};

template <Scalar T>
T element(Index i, Index j) {
  return small_integer<T>(5, i, j);
}

template <Scalar T>
Handle type_of_elements() {
  const hid_t part = sizeof(Real<T>) == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  if constexpr (!is_complex<T>) return {H5Tcopy(part), H5Tclose};
  Handle pair(H5Tcreate(H5T_COMPOUND, sizeof(T)), H5Tclose);
  H5Tinsert(pair.id(), "r", 0, part);
  H5Tinsert(pair.id(), "i", sizeof(Real<T>), part);
  return pair;
}

/// How a dataset is stored.
struct Kept {
  const char* name;
  std::vector<hsize_t> chunk = {};  // empty: contiguous
  bool compressed = false;
  hid_t type = -1;  // below zero: that of the elements
  bool matlab = false;
};

void give_attribute(const Handle& object, const char* name, const char* text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.id(), std::max<std::size_t>(std::strlen(text), 1));
  const Handle attribute(H5Acreate2(object.id(), name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  H5Awrite(attribute.id(), type.id(), text);
}

Handle open_file(const std::string& file, unsigned mode) {
  return {H5Fopen(file.c_str(), mode, H5P_DEFAULT), H5Fclose};
}
Handle open_dataset(const Handle& file, const char* name) {
  return {H5Dopen2(file.id(), name, H5P_DEFAULT), H5Dclose};
}

/// Rank 0 makes a file with the dataset /g/A (collective). data: as the file has it, in C order of the sizes.
template <Scalar T>
void create(const std::string& file, const std::vector<hsize_t>& shape, const std::vector<T>& data,
            const Kept& kept) {
  world().barrier();
  if (world().rank() == 0) {
    const Handle id(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Handle group(H5Gcreate2(id.id(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const std::vector<hsize_t> unlimited(shape.size(), H5S_UNLIMITED);
    const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(),
                                        kept.chunk.empty() ? nullptr : unlimited.data()),
                       H5Sclose);
    const Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), type = type_of_elements<T>();
    if (!kept.chunk.empty()) H5Pset_chunk(how.id(), static_cast<int>(shape.size()), kept.chunk.data());
    if (kept.compressed) {
      H5Pset_shuffle(how.id());
      H5Pset_deflate(how.id(), 1);
      H5Pset_fletcher32(how.id());
    }
    const Handle dataset(H5Dcreate2(group.id(), "A", kept.type < 0 ? type.id() : kept.type, space.id(),
                                    H5P_DEFAULT, how.id(), H5P_DEFAULT),
                         H5Dclose);
    CHECK(dataset.is_open());
    if (!data.empty())
      CHECK(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) >= 0);
    if (kept.matlab) give_attribute(dataset, "MATLAB_class", "double");
  }
  world().barrier();
}

/// A dataset as HDF5 reads it, in C order; with its shape.
template <Scalar T>
std::pair<std::vector<hsize_t>, std::vector<T>> whole(const std::string& file, const char* name) {
  const Handle id = open_file(file, H5F_ACC_RDONLY), dataset = open_dataset(id, name);
  const Handle space(H5Dget_space(dataset.id()), H5Sclose), type = type_of_elements<T>();
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.id())));
  H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr);
  std::vector<T> data(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id())));
  if (!data.empty()) H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data());
  const Handle stored(H5Dget_type(dataset.id()), H5Tclose);
  CHECK(H5Tequal(stored.id(), type.id()) > 0);
  return {shape, data};
}

template <Scalar T>
DistMatrix<T> unread_matrix(const GridPtr& grid, const Layout& layout) {
  DistMatrix<T> X(grid, layout);
  X.fill([](Index, Index) { return T(99); });
  return X;
}

std::vector<hsize_t> shape_of(Size size) {
  return {static_cast<hsize_t>(size.rows), static_cast<hsize_t>(size.cols)};
}

/// Elements in the order of the rows.
template <Scalar T>
std::vector<T> by_rows(Size size) {
  return dense<T>(size.cols, size.rows, [](Index j, Index i) { return element<T>(i, j); });
}

GridPtr grid_on(const std::shared_ptr<Backend>& backend) {
  return std::make_shared<const ProcessGrid>(world(), near_square(world().size()), backend);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A matrix written from one layout to a dataset is read into any other", "[hdf5]",
                        Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string name = folder.file("A.h5") + ":/some/group/A";
  std::size_t turn = 0;
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const Size size : sizes) {
      const std::vector<Layout> layouts = some_layouts(*grid, size.rows, size.cols);
      DistMatrix<T> A(grid, layouts[turn++ % layouts.size()]);
      A.fill(element<T>);
      write_matrix(name, A);
      world().barrier();
      CAPTURE(size.rows, size.cols, grid->rows(), grid->cols(), A.layout().describe());
      if (world().rank() == 0) {
        const auto [shape, data] = whole<T>(folder.file("A.h5"), "/some/group/A");
        CHECK(shape == shape_of(size));
        CHECK(data == by_rows<T>(size));
        CHECK(folder.names() == std::vector<std::string>{"A.h5"});
      }
      const MatrixHeader header = read_matrix_header(world(), name);
      CHECK((header.type == scalar_type_of<T> && header.rows == size.rows && header.cols == size.cols));
      CHECK((header.dimensions == 2 && !header.fortran_order));
      for (const Layout& layout : layouts) {
        CAPTURE(layout.describe());
        auto B = unread_matrix<T>(grid, layout);
        read_matrix(name, header, B);
        CHECK(mismatches(B, element<T>) == 0);
      }
      world().barrier();
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Datasets of every storage are read into any layout", "[hdf5]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  std::vector<Kept> storages{{"contiguous"},
                             {"chunks", {3, 2}},
                             {"compressed chunks", {2, 4}, true},
                             {"one chunk", {100, 100}, true},
                             {"rows", {1, 11}, true},
                             {"of MATLAB", {}, false, -1, true},
                             {"of MATLAB in chunks", {2, 3}, true, -1, true}};
  if constexpr (!is_complex<T>)
    storages.push_back(
        {"another order of bytes", {}, false, sizeof(T) == 4 ? H5T_IEEE_F32BE : H5T_IEEE_F64BE});
  const std::vector<GridPtr> grids{grid_on(make_host_backend()), grid_on(make_device_double())};
  for (const GridPtr& grid : grids) {
    for (const Size size : sizes) {
      for (const Kept& storage : storages) {
        const bool is_empty = size.rows * size.cols == 0;
        if (is_empty && storage.matlab) continue;
        const Size stored = storage.matlab ? Size{size.cols, size.rows} : size;
        create<T>(file, shape_of(stored),
                  storage.matlab ? dense<T>(size.rows, size.cols, element<T>) : by_rows<T>(size), storage);
        const MatrixHeader header = read_matrix_header(world(), name);
        CAPTURE(storage.name, size.rows, size.cols);
        CHECK((header.rows == size.rows && header.cols == size.cols && header.type == scalar_type_of<T>));
        CHECK(header.fortran_order == storage.matlab);
        CHECK((header.data_offset >= 0) == (storage.chunk.empty() && storage.type < 0 && !is_empty));
        for (const Layout& layout : some_layouts(*grid, size.rows, size.cols)) {
          CAPTURE(layout.describe());
          auto X = unread_matrix<T>(grid, layout);
          read_matrix(name, header, X);
          CHECK(mismatches(X, element<T>) == 0);
          if constexpr (std::same_as<T, std::complex<double>>) continue;
          DistMatrix<std::complex<double>> wide(grid, layout);
          read_matrix(name, header, wide);
          CHECK(mismatches(wide, [](Index i, Index j) { return std::complex<double>(element<T>(i, j)); }) ==
                0);
        }
      }
    }
  }
}

TEST_CASE("Numbers of other types become the smallest type that holds them", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  const GridPtr grid = square_grid();
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  for (const auto& [type, expected] : {std::pair{H5T_STD_I8LE, ScalarType::f32},
                                       {H5T_STD_I16BE, ScalarType::f32},
                                       {H5T_STD_I32LE, ScalarType::f64},
                                       {H5T_IEEE_F32BE, ScalarType::f32},
                                       {half, ScalarType::f32}}) {
    for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{}, {2, 2}}) {
      create<double>(file, {7, 3}, by_rows<double>({7, 3}), {"", chunk, false, type});
      const MatrixHeader header = read_matrix_header(world(), name);
      CHECK((header.type == expected && header.data_offset < 0));
      for (const Layout& layout : some_layouts(*grid, 7, 3)) {
        DistMatrix<double> X(grid, layout);
        read_matrix(name, header, X);
        CHECK(mismatches(X, element<double>) == 0);
      }
    }
  }
  H5Tclose(half);
  for (const auto& [type, text] : {std::pair{H5T_STD_I64LE, "integers of 64 bits, which f64 cannot hold"},
                                   {H5T_STD_U64BE, "unsigned integers of 64 bits"},
                                   {H5T_NATIVE_LDOUBLE, "floating-point numbers of 128 bits"}}) {
    create<double>(file, {7, 3}, by_rows<double>({7, 3}), {"", {}, false, type});
    CHECK(contains(message_of<InputError>([&] { read_matrix_header(world(), name); }), text));
  }
}

TEST_CASE("A part of a dataset is what NumPy takes", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  const GridPtr grid = square_grid();
  // Element (i, j, k) of 4 x 6 x 5 is 100 i + 10 j + k.
  const auto value = [](Index i, Index j, Index k) { return static_cast<double>(100 * i + 10 * j + k); };
  struct Part {
    const char* part;
    Size size;
    std::function<double(Index, Index)> expected;
  };
  const Part parts[] = {
      {"@1", {6, 5}, [&](Index i, Index j) { return value(1, i, j); }},
      {"@-1,:", {6, 5}, [&](Index i, Index j) { return value(3, i, j); }},
      {"@:,2", {4, 5}, [&](Index i, Index j) { return value(i, 2, j); }},
      {"@1:3,0:6:2,4", {2, 3}, [&](Index i, Index j) { return value(1 + i, 2 * j, 4); }},
      {"@1:,-2,-3:", {3, 3}, [&](Index i, Index j) { return value(1 + i, 4, 2 + j); }},
      {"@:0:1,0,:", {0, 5}, [&](Index, Index) { return 0.0; }},
      {"@3,5:6,0:5:3", {1, 2}, [&](Index i, Index j) { return value(3, 5 + i, 3 * j); }},
      {"@2,:,1", {6, 1}, [&](Index i, Index) { return value(2, i, 1); }},
  };
  for (const bool matlab : {false, true}) {
    for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{}, {3, 4, 2}}) {
      std::vector<double> data;
      if (matlab) {
        for (Index k = 0; k < 5; ++k)
          for (Index j = 0; j < 6; ++j)
            for (Index i = 0; i < 4; ++i) data.push_back(value(i, j, k));
      } else {
        for (Index i = 0; i < 4; ++i)
          for (Index j = 0; j < 6; ++j)
            for (Index k = 0; k < 5; ++k) data.push_back(value(i, j, k));
      }
      create<double>(file, matlab ? std::vector<hsize_t>{5, 6, 4} : std::vector<hsize_t>{4, 6, 5}, data,
                     {"", chunk, !chunk.empty(), -1, matlab});
      for (const Part& part : parts) {
        CAPTURE(part.part, matlab, chunk.size());
        const MatrixHeader header = read_matrix_header(world(), name + part.part);
        CHECK((header.rows == part.size.rows && header.cols == part.size.cols));
        for (const Layout& layout : some_layouts(*grid, header.rows, header.cols)) {
          DistMatrix<double> X(grid, layout);
          read_matrix(name + part.part, header, X);
          CHECK(mismatches(X, part.expected) == 0);
        }
      }
      // The whole array, and a part that is one.
      for (const auto& [text, shape, begin] :
           {std::tuple{"", std::vector<Index>{4, 6, 5}, Index{0}}, {"@:,1:6:2,:", {4, 3, 5}, Index{1}}}) {
        const Dims dims = dims_along(*grid, shape, 1, Axis::all, 3);
        const ArrayHeader header = read_array_header(world(), name + text);
        CHECK((header.sizes == shape && header.fortran_order == matlab));
        DistMatrix<double> X(grid, array_space(grid, dims, Axis::all).layout(1));
        read_array(name + text, header, dims, X);
        const Index step = begin + 1;
        CHECK(mismatches(X, [&, first = begin](Index row, Index) {
                const std::vector<Index> place = place_of(dims, row);
                return value(place[0], first + step * place[1], place[2]);
              }) == 0);
      }
      // A part of the array that a name stands for.
      for (const auto& [text, begin] : {std::pair{"", Index{0}}, {"@:,1:6:2,:", Index{1}}}) {
        const Dims dims = dims_along(*grid, {2, 2, 4}, 1, Axis::all, 3);
        const ArrayHeader header = read_array_header(world(), name + text);
        DistMatrix<double> X(grid, array_space(grid, dims, Axis::all).layout(1));
        read_array(name + text, header, {{1, 2}, {1, 2}, {0, 4}}, dims, X);
        CHECK(mismatches(X, [&, first = begin](Index row, Index) {
                const std::vector<Index> place = place_of(dims, row);
                return value(1 + place[0], first + (first + 1) * (1 + place[1]), place[2]);
              }) == 0);
      }
      const auto refusal = [&](const std::string& part) {
        return message_of<InputError>([&] { read_matrix_header(world(), name + part); });
      };
      CHECK(contains(refusal(""), "is 4 x 6 x 5, but a matrix has two dimensions"));
      CHECK(
          contains(refusal("@4"), "of dimension 0 the index 4 is wanted, but the dataset, 4 x 6 x 5, has 4"));
      CHECK(contains(refusal("@0,2:9"), "of dimension 1 the range 2:9"));
      CHECK(contains(refusal("@0,3:2"), "the range 3:2"));
      CHECK(contains(refusal("@0,0,0,0"), "of 4 dimensions, but the dataset has 3"));
      CHECK(contains(refusal("@0,0,0"), "of which 0 dimensions are wanted"));
    }
  }
  for (const char* part : {"@", "@,", "@1,", "@0:1:0", "@1:2:3:4", "@99999999999999999999"}) {
    CAPTURE(part);
    CHECK(!message_of<UsageError>([&] { read_matrix_header(world(), name + part); }).empty());
  }
}

TEMPLATE_LIST_TEST_CASE("An array is written to a dataset and read into any other cut", "[hdf5]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string name = folder.file("x.hdf5") + ":x";
  const auto element_in = [](const Dims& dims) {
    return [dims](Index i, Index j) { return element<T>(number_of(dims, place_of(dims, i)), j); };
  };
  for (const Index nrhs : {1, 3, 0}) {
    for (const std::vector<Index>& shape :
         {std::vector<Index>{7}, {3, 5}, {2, 3, 4}, {2, 1, 3, 2}, {4, 0, 2}}) {
      const GridPtr grid = square_grid();
      const Dims dims = dims_along(*grid, shape, 0, Axis::all, 2);
      write_array(name, dims,
                  filled(grid, array_space(grid, dims, Axis::all).layout(nrhs), element_in(dims)));
      const ArrayHeader header = read_array_header(world(), name);
      std::vector<Index> expected = shape;
      if (nrhs != 1) expected.push_back(nrhs);
      CHECK((header.sizes == expected && header.type == scalar_type_of<T>));
      if (world().rank() == 0)
        CHECK(whole<T>(folder.file("x.hdf5"), "/x").second ==
              dense<T>(nrhs, dims.elements(), [](Index j, Index i) { return element<T>(i, j); }));
      for (int dim = 0; dim < dims.count(); ++dim) {
        const Dims other = dims_along(*grid, shape, dim, Axis::grid_cols, 3);
        DistMatrix<T> X(grid, array_space(grid, other, Axis::grid_cols).layout(nrhs));
        read_array(name, header, other, X);
        CHECK(mismatches(X, element_in(other)) == 0);
      }
      world().barrier();
    }
  }
}

TEST_CASE("Arrays larger than the buffers are read in chunks of any shape", "[hdf5]") {
  const GridPtr grid = compact_grids().front();
  const ScratchFolder folder;
  const std::string file = folder.file("large.h5");
  const std::vector<Index> shape{2, 700, 800};  // a slice is larger than a buffer
  const auto value = [](Index i, Index j, Index k) { return static_cast<double>((i * 1000 + j) * 1000 + k); };
  std::vector<double> data;
  for (Index i = 0; i < shape[0]; ++i)
    for (Index j = 0; j < shape[1]; ++j)
      for (Index k = 0; k < shape[2]; ++k) data.push_back(value(i, j, k));
  for (const std::vector<hsize_t>& chunk :
       {std::vector<hsize_t>{}, {1, 700, 100}, {2, 700, 800}, {1, 64, 300}, {2, 699, 7}}) {
    create<double>(file, {2, 700, 800}, data, {"", chunk});
    const ArrayHeader header = read_array_header(world(), file + ":/g/A");
    for (int along = 0; along < 3; ++along) {
      const Dims dims = dims_along(*grid, shape, along, Axis::all, 3);
      DistMatrix<double> X(grid, array_space(grid, dims, Axis::all).layout(1));
      read_array(file + ":/g/A", header, dims, X);
      CAPTURE(chunk, along);
      CHECK(mismatches(X, [&](Index row, Index) {
              const std::vector<Index> place = place_of(dims, row);
              return value(place[0], place[1], place[2]);
            }) == 0);
    }
  }
}

TEST_CASE("Blocks larger than the buffers go through chunks and rows", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  const std::shared_ptr<Backend> backends[] = {make_host_backend(), make_device_double()};
  const auto value = [](Index i, Index j) { return counter_uniform(1, i, j); };
  for (const Size size : {Size{1501, 400}, Size{2, 524289}, Size{524289, 2}}) {
    for (const auto& backend : backends) {
      const auto grid = std::make_shared<const ProcessGrid>(world(), GridShape{1, 1}, backend);
      for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{}, {1000, 300}, {1, 70000}}) {
        if (!chunk.empty() &&
            (chunk[0] > static_cast<hsize_t>(size.rows) || chunk[1] > static_cast<hsize_t>(size.cols)))
          continue;
        create<double>(file, shape_of(size),
                       dense<double>(size.cols, size.rows, [&](Index j, Index i) { return value(i, j); }),
                       {"", chunk, false});
        DistMatrix<double> A(grid, replicated(size.rows, size.cols));
        read_matrix(name, read_matrix_header(world(), name), A);
        CAPTURE(size.rows, size.cols, backend->name(), chunk.size());
        CHECK(mismatches(A, value) == 0);
        const std::string copy = folder.file("copy.h5");
        write_matrix(copy + ":A", A);
        if (world().rank() == 0 && chunk.empty()) {
          const auto [shape, data] = whole<double>(copy, "A");
          CHECK(data == whole<double>(file, "/g/A").second);
        }
        world().barrier();
      }
    }
  }
}

TEST_CASE("Narrow blocks of many columns are written row by row all the same", "[hdf5]") {
  const ScratchFolder folder;
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const Index cols : {Index{3}, Index{2000}}) {  // pieces of a row shorter, and longer than a page
      DistMatrix<double> A(grid, column_blocks(*grid, 10, cols));
      A.fill(element<double>);
      write_matrix(folder.file("A.h5") + ":A", A);
      if (world().rank() == 0)
        CHECK(whole<double>(folder.file("A.h5"), "A").second == by_rows<double>({10, cols}));
      world().barrier();
    }
  }
}

namespace {

DistMatrix<double> some_matrix(const GridPtr& grid, Index rows = 20) {
  DistMatrix<double> A(grid, row_blocks(*grid, rows, 12));
  A.fill(element<double>);
  return A;
}

/// An attribute with one text of any length.
void give_long_text(const Handle& object, const char* name, const char* text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  const Handle attribute(H5Acreate2(object.id(), name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  H5Awrite(attribute.id(), type.id(), &text);
}

}  // namespace

TEST_CASE("A file keeps what it has, and a dataset is replaced", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  const GridPtr grid = square_grid();
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {"", {2, 2}, true});
  for (const Index rows : {20, 20, 31, 5}) {
    write_matrix(file + ":/results/X", some_matrix(grid, rows));
    write_matrix(file + ":/results/more/Y", some_matrix(grid, 4));
    world().barrier();
    if (world().rank() == 0) {
      CHECK(whole<double>(file, "/g/A").second == by_rows<double>({7, 3}));
      CHECK(whole<double>(file, "/results/X").second == by_rows<double>({rows, 12}));
      CHECK(whole<double>(file, "/results/more/Y").second == by_rows<double>({4, 12}));
      CHECK(folder.names() == std::vector<std::string>{"A.h5"});
    }
    world().barrier();
  }
  // A dataset of the same size takes the same place: a file does not grow by being written to.
  const auto size = InputFile(file).size();
  world().barrier();
  for (int k = 0; k < 3; ++k) write_matrix(file + ":/results/X", some_matrix(grid, 5));
  CHECK(InputFile(file).size() == size);
}

TEST_CASE("A dataset gets the attributes of another one, but those of its storage", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), other = folder.file("B.h5");
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
  if (world().rank() == 0) {
    const Handle id = open_file(file, H5F_ACC_RDWR), dataset = open_dataset(id, "/g/A");
    for (const char* name : {"units", "MATLAB_class", "CLASS"}) give_attribute(dataset, name, "m/s");
    give_long_text(dataset, "comment", "of any length");
  }
  world().barrier();
  const GridPtr grid = square_grid();
  for (const std::string& target : {other, file}) {
    write_matrix(target + ":/X", some_matrix(grid), 2, file + ":/g/A");
    world().barrier();
    if (world().rank() == 0) {
      const Handle id = open_file(target, H5F_ACC_RDONLY), dataset = open_dataset(id, "/X");
      CHECK(H5Aexists(dataset.id(), "units") > 0);
      CHECK(H5Aexists(dataset.id(), "MATLAB_class") == 0);
      CHECK(H5Aexists(dataset.id(), "CLASS") == 0);
      const Handle attribute(H5Aopen(dataset.id(), "comment", H5P_DEFAULT), H5Aclose);
      const Handle type(H5Aget_type(attribute.id()), H5Tclose);
      char* text = nullptr;
      CHECK(H5Aread(attribute.id(), type.id(), &text) >= 0);
      CHECK((text != nullptr && std::string(text) == "of any length"));
      H5free_memory(text);
    }
    world().barrier();
  }
  // A file without attributes is no reason to fail.
  write_matrix(other + ":/X", some_matrix(grid), 2, folder.file("A.npy"));
  write_matrix(folder.file("X.npy"), some_matrix(grid), 2, file + ":/g/A");
}

TEST_CASE("What cannot be read or written is an error on all ranks", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
  if (world().rank() == 0) {
    const Handle id = open_file(file, H5F_ACC_RDWR);
    H5Lcreate_soft("/g/A", id.id(), "link", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/g", id.id(), "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    std::ofstream(folder.file("text.h5")) << "no HDF5";
  }
  world().barrier();
  const auto refusal = [](const std::string& name) {
    return message_of<InputError>([&] { read_matrix_header(world(), name); });
  };
  CHECK(
      contains(refusal(folder.file("missing.h5") + ":/A"), "missing.h5: cannot open the file: No such file"));
  CHECK(contains(refusal(folder.file("text.h5") + ":/A"), "text.h5: is no HDF5 file"));
  CHECK(contains(refusal(file + ":/B"), "there is no dataset /B in " + file +
                                            ", whose first level is this: it "
                                            "has elsewhere, g, link"));
  CHECK(contains(refusal(file + ":/g"), "is a group, and not a dataset: it has A; name a dataset, such as"));
  CHECK(contains(refusal(file), "is a group, and not a dataset: it has elsewhere, g, link"));
  CHECK(contains(refusal(file + ":/elsewhere/A"), "there is no dataset /elsewhere/A"));
  CHECK(read_matrix_header(world(), file + ":/link").rows == 7);

  const GridPtr grid = square_grid();
  const DistMatrix<double> X = some_matrix(grid);
  const std::string before = contents(file);
  const auto not_written = [&](const std::string& name) {
    return message_of<OutputError>([&] { write_matrix(name, X); });
  };
  const std::vector<std::string> files = folder.names();
  if (grid->is_member()) {
    CHECK(contains(not_written(file + ":/g"), "is a group, and will not be replaced"));
    CHECK(contains(not_written(file + ":/g/A/x"), "is no group, and cannot hold a dataset"));
    CHECK(contains(not_written(file + ":/link"), "is a link to another name"));
    CHECK(contains(not_written(file + ":/elsewhere/x"), "is a link to another name"));
    CHECK(contains(not_written(folder.file("text.h5") + ":/X"), "is no HDF5 file"));
    CHECK(contains(not_written(folder.file("none/B.h5") + ":/X"), "No such file or directory"));
  } else {
    for (int k = 0; k < 6; ++k) not_written(file + ":/g");
  }
  for (const std::string& name : {file, file + ":/x@0", folder.file("x.mat") + ":/x"})
    CHECK(!message_of<UsageError>([&] { write_matrix(name, X); }).empty());
  world().barrier();
  CHECK(folder.names() == files);
  CHECK(contents(file) == before);
}

TEMPLATE_LIST_TEST_CASE("Chunks lie in a file where a dataset says", "[hdf5]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  const Size size{23, 14};
  const std::vector<T> data = by_rows<T>(size);
  for (const auto& [chunk_rows, chunk_cols] :
       std::vector<std::pair<hsize_t, hsize_t>>{{5, 4}, {1, 14}, {23, 14}, {40, 3}, {2, 20}}) {
    CAPTURE(chunk_rows, chunk_cols);
    create(file, shape_of(size), data, {"chunks", {chunk_rows, chunk_cols}});
    const MatrixHeader header = read_matrix_header(world(), name);
    const MatrixBoxes boxes = boxes_of(name, header, scalar_type_of<T>);
    CHECK(boxes.rows == static_cast<Index>(chunk_rows));
    CHECK(boxes.cols == static_cast<Index>(chunk_cols));
    std::ifstream bytes(file, std::ios::binary);
    bool is_same = true;
    for (Index i = 0; i < size.rows; ++i)
      for (Index j = 0; j < size.cols; ++j) {
        const Index box = i / boxes.rows * boxes.across() + j / boxes.cols;
        bytes.seekg(boxes.offsets.at(static_cast<std::size_t>(box)) +
                    (i % boxes.rows * boxes.cols + j % boxes.cols) * Index{sizeof(T)});
        T found{};
        bytes.read(reinterpret_cast<char*>(&found), sizeof found);
        is_same = is_same && found == element<T>(i, j);
      }
    CHECK(is_same);
    world().barrier();
  }
  const auto refusal = [&](const std::string& of, const Kept& kept) {
    create(file, shape_of(size), data, kept);
    const MatrixHeader header = read_matrix_header(world(), of);
    return message_of<UsageError>([&] { boxes_of(of, header, header.type); });
  };
  CHECK(contains(refusal(name, {"compressed", {5, 4}, true}), "is compressed"));
  CHECK(contains(refusal(name, {"of MATLAB", {5, 4}, false, -1, true}), "one column after the other"));
  CHECK(contains(refusal(name + "@2:9", {"chunks", {5, 4}}), "a part of a dataset"));
}

TEST_CASE("Chunks that were never written are not read in place", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  create<double>(file, {23, 14}, {}, {"chunks", {5, 4}});
  const MatrixHeader header = read_matrix_header(world(), name);
  CHECK(contains(message_of<UsageError>([&] { boxes_of(name, header, header.type); }), "never written"));
}

TEST_CASE("A dataset that ends early is an error on all ranks", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{}, {8, 8}}) {
    create<double>(file, {64, 64}, by_rows<double>({64, 64}), {"", chunk});
    const MatrixHeader header = read_matrix_header(world(), name);
    world().barrier();
    // The file is cut after the header was read.
    if (world().rank() == 0) std::filesystem::resize_file(file, std::filesystem::file_size(file) - 500);
    world().barrier();
    CHECK(contains(message_of<InputError>([&] { read_matrix_header(world(), name); }), file));
    for (const GridPtr& grid : all_grids(make_host_backend)) {
      DistMatrix<double> X(grid, row_blocks(*grid, 64, 64));
      CHECK(message_of<InputError>([&] { read_matrix(name, header, X); }).empty() != grid->is_member());
    }
  }
}

TEST_CASE("A disk that is full for any rank leaves the old HDF5 file", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    const DistMatrix<double> X = some_matrix(grid);
    for (const bool old_file : {false, true}) {
      if (world().rank() == 0) std::filesystem::remove(file);
      if (old_file) create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
      const std::string before = contents(file);
      const int members = grid->shape().size();
      for (const int poor_rank : {members - 1, 0}) {
        std::string text;
        {
          const FileSizeLimit limit(world().rank() == poor_rank ? rlim_t{128} : RLIM_INFINITY);
          text = message_of<OutputError>([&] { write_matrix(file + ":/X", X); });
        }
        CAPTURE(text, poor_rank);
        CHECK(text.empty() != grid->is_member());
        CHECK(contains(text, "File too large") == grid->is_member());
        world().barrier();
        if (world().rank() == 0) {
          CHECK(folder.names() == (old_file ? std::vector<std::string>{"A.h5"} : std::vector<std::string>{}));
          if (old_file) CHECK(contents(file) == before);
        }
        world().barrier();
      }
    }
  }
}

TEST_CASE("Jobs that write to one file wait for each other", "[hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.h5.lock");
  if (world().rank() != 0) return;
  std::atomic<bool> is_held = false, is_given_up = false;
  std::thread other([&] {
    const LockFile held(path, "write there");
    is_held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    is_given_up = true;
  });
  while (!is_held) std::this_thread::yield();
  CHECK_THROWS_AS(LockFile(path, "write there"), OutputError);
  const LockFile mine(path, "write there", std::chrono::seconds(20));
  CHECK(is_given_up);
  other.join();
}
