// SPDX-License-Identifier: BSD-3-Clause
// Datasets in HDF5 files, of every kind of storage, written and read by ranks that hold parts of them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/hdf5_datasets.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

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
