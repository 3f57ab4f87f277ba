// SPDX-License-Identifier: BSD-3-Clause
// Files of arrays of several dimensions, written and read by ranks that hold boxes of them.
#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/npy_files.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

const std::vector<std::vector<Index>> shapes{{7},    {3, 5},   {2, 3, 4}, {2, 1, 3, 2}, {2, 2, 1, 3, 2},
                                             {0, 3}, {4, 0, 2}};

/// Calls check(dims, layout) for arrays of all shapes, cut along one dimension and one axis after the other.
template <class Check>
void for_some_arrays(Index nrhs, Check&& check) {
  std::size_t turn = 0;
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const std::vector<Index>& sizes : shapes) {
      if (nrhs != 1 && sizes.size() == Dims::most) continue;
      for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim) {
        const Axis axis = all_axes[turn % all_axes.size()];
        const Dims dims = dims_along(*grid, sizes, dim, axis, static_cast<int>(turn % 4));
        ++turn;
        INFO(describe(*grid) << ": " << dims.describe() << " along " << name_of(axis) << ", " << nrhs
                             << " columns");
        check(grid, dims, array_space(grid, dims, axis).layout(nrhs));
      }
    }
  }
}

/// The element with this number, in C order, of the array in column j.
template <Scalar T>
T element(Index number, Index j) {
  return small_integer<T>(5, number, j);
}
template <Scalar T>
auto element_in(const Dims& dims) {
  return [dims](Index i, Index j) { return element<T>(number_of(dims, place_of(dims, i)), j); };
}

/// Reads the middle of arrays with these dims, and all columns but the first if there are several, into any
/// cut.
void check_part(const GridPtr& grid, const std::string& path, const ArrayHeader& header, const Dims& dims,
                Index nrhs) {
  Box part;
  std::vector<Index> sizes;
  for (const Index size : dims.sizes()) {
    part.push_back({size / 3, size - size / 3 - size / 4});
    sizes.push_back(part.back().size);
  }
  const Index first_column = nrhs == 1 ? 0 : 1, columns = nrhs - first_column;
  if (nrhs != 1) part.push_back({first_column, columns});
  for (int dim = 0; dim < dims.count(); ++dim) {
    const Dims cut = dims_along(*grid, sizes, dim, Axis::all, 3);
    DistMatrix<double> X(grid, array_space(grid, cut, Axis::all).layout(columns));
    read_array(path, header, part, cut, X);
    CHECK(mismatches(X, [&](Index i, Index j) {
            std::vector<Index> place = place_of(cut, i);
            for (std::size_t d = 0; d < place.size(); ++d) place[d] += part[d].begin;
            return element<double>(number_of(dims, place), first_column + j);
          }) == 0);
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("An array is written in C order and read into any other cut", "[npy_arrays]",
                        Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string path = folder.file("x.npy");
  for (const Index nrhs : {1, 3, 0}) {
    for_some_arrays(nrhs, [&](const GridPtr& grid, const Dims& dims, const Layout& layout) {
      write_array(path, dims, filled(grid, layout, element_in<T>(dims)));
      world().barrier();
      std::vector<Index> sizes = dims.sizes();
      if (nrhs != 1) sizes.push_back(nrhs);
      const ArrayHeader header = read_array_header(world(), path);
      CHECK((header.sizes == sizes && header.type == scalar_type_of<T> && !header.fortran_order));
      if (world().rank() == 0) {
        const auto data = dense<T>(nrhs, dims.elements(), [](Index j, Index i) { return element<T>(i, j); });
        CHECK(contents(path).substr(static_cast<std::size_t>(header.data_offset)) == bytes_of(data));
      }
      for (int dim = 0; dim < dims.count(); ++dim) {
        for (const Axis axis : {Axis::all, Axis::grid_cols}) {
          const Dims other = dims_along(*grid, dims.sizes(), dim, axis, 3);
          DistMatrix<T> X(grid, array_space(grid, other, axis).layout(nrhs));
          read_array(path, header, other, X);
          CHECK(mismatches(X, element_in<T>(other)) == 0);
        }
      }
      world().barrier();
    });
  }
}

TEST_CASE("A part of an array is read into any cut", "[npy_arrays]") {
  const ScratchFolder folder;
  const std::string path = folder.file("x.npy");
  for (const Index nrhs : {1, 3}) {
    for_some_arrays(nrhs, [&](const GridPtr& grid, const Dims& dims, const Layout& layout) {
      write_array(path, dims, filled(grid, layout, element_in<double>(dims)));
      world().barrier();
      check_part(grid, path, read_array_header(world(), path), dims, nrhs);
      world().barrier();
    });
  }
}

TEST_CASE("Parts that an array does not have are refused on all ranks", "[npy_arrays]") {
  const ScratchFolder folder;
  const std::string path = folder.file("x.npy");
  const GridPtr grid = all_grids(make_host_backend).front();
  create_npy(path, ScalarType::f64, false, "(4, 6)", std::vector<double>(24));
  const ArrayHeader header = read_array_header(world(), path);
  const Space space = array_space(grid, {2, 6}, 1);
  DistMatrix<double> X(grid, space.layout(1));
  const auto refusal_of = [&](const Box& part) {
    return message_of<ShapeError>([&] { read_array(path, header, part, space.dims, X); });
  };
  CHECK(refusal_of({{2, 2}, {0, 6}}).empty());
  CHECK(contains(refusal_of({{3, 2}, {0, 6}}), "has no part 3:5,0:6; it is an array of 4 x 6"));
  CHECK(contains(refusal_of({{-1, 2}, {0, 6}}), "has no part -1:1,0:6"));
  CHECK(contains(refusal_of({{0, 2}}), "has no part 0:2"));
  CHECK(contains(refusal_of({{0, 3}, {0, 6}}), "x.npy@0:3,0:6 has another shape than an array of 2 x 6"));
}

TEST_CASE("An array in Fortran order is read in any cut", "[npy_arrays]") {
  const ScratchFolder folder;
  const std::string path = folder.file("x.npy");
  for_some_arrays(1, [&](const GridPtr& grid, const Dims& dims, const Layout& layout) {
    // Element number k of the file is at the place whose first index varies fastest.
    std::vector<double> data;
    std::vector<Index> place(static_cast<std::size_t>(dims.count()));
    std::string shape;
    for (const Index size : dims.sizes()) shape += message(size, ", ");
    for (Index k = 0; k < dims.elements(); ++k) {
      data.push_back(element<double>(number_of(dims, place), 0));
      for (std::size_t d = 0; d < place.size() && ++place[d] == dims.size(static_cast<int>(d)); ++d)
        place[d] = 0;
    }
    create_npy(path, ScalarType::f64, true, "(" + shape + ")", data);
    const ArrayHeader header = read_array_header(world(), path);
    DistMatrix<double> X(grid, layout);
    read_array(path, header, dims, X);
    CHECK(mismatches(X, element_in<double>(dims)) == 0);
    check_part(grid, path, header, dims, 1);
    world().barrier();
  });
}

TEST_CASE("Arrays of no dimension, or of six, or of another shape are refused on all ranks", "[npy_arrays]") {
  const ScratchFolder folder;
  const std::string path = folder.file("x.npy");
  const GridPtr grid = all_grids(make_host_backend).front();
  const auto refusal_of = [&](const std::string& shape, std::size_t elements) {
    create_npy(path, ScalarType::f64, false, shape, std::vector<double>(elements));
    return message_of<InputError>([&] { read_array_header(world(), path); });
  };
  CHECK(contains(refusal_of("()", 1), "its array has 0 dimensions, but one to five are possible"));
  CHECK(contains(refusal_of("(1, 1, 1, 1, 1, 2)", 2), "its array has 6 dimensions"));
  CHECK(contains(refusal_of("(2, 3, 4)", 23), "an array of 2 x 3 x 4 elements of 8 bytes"));
  CHECK(contains(refusal_of("(4096, 4294967296, 4294967296)", 0), "is larger than any file can be"));
  CHECK(refusal_of("(2, 3, 4)", 24).empty());
  CHECK_THROWS_AS(read_matrix_header(world(), path), InputError);
  const ArrayHeader header = read_array_header(world(), path);
  const Space space = array_space(grid, {2, 3, 4}, 1), turned = array_space(grid, {3, 2, 4}, 0);
  DistMatrix<double> X(grid, space.layout(1)), Y(grid, turned.layout(1)), two(grid, space.layout(2));
  DistMatrix<float> narrow(grid, space.layout(1));
  CHECK_THROWS_AS(read_array(path, header, turned.dims, Y), ShapeError);
  CHECK_THROWS_AS(read_array(path, header, space.dims, two), ShapeError);
  CHECK_THROWS_AS(read_array(path, header, space.dims, narrow), ShapeError);
  CHECK_THROWS_AS(read_array(path, header, array_space(grid, {25}, 0).dims, X), ShapeError);
  const Space five = array_space(grid, {1, 1, 1, 2, 1}, 0);
  CHECK_THROWS_AS(write_array(path, five.dims, DistMatrix<double>(grid, five.layout(2))), ShapeError);
}
