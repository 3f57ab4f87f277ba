// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/array_file.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "gridlops/base/error.hpp"
#include "io/npy_files.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Size {
  Index rows, cols;
};
// There are empty shapes, single rows, sizes that no grid divides, and fewer rows or columns than ranks.
constexpr Size sizes[] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {7, 3}, {2, 11}, {1, 9}, {13, 1}};

template <Scalar T>
T element(Index i, Index j) {
  return small_integer<T>(5, i, j);
}

/// Whether every element of this rank's block is the one that belongs there.
template <Scalar T>
bool is_right(const DistMatrix<T>& X) {
  const auto block = X.local();
  for (Index j = 0; j < block.cols; ++j) {
    for (Index i = 0; i < block.rows; ++i) {
      if (block(i, j) != element<T>(X.local_row_range().begin + i, X.local_col_range().begin + j))
        return false;
    }
  }
  return true;
}

template <Scalar T>
DistMatrix<T> unread_matrix(const GridPtr& grid, const Layout& layout) {
  DistMatrix<T> X(grid, layout);
  X.fill([](Index, Index) { return T(99); });
  return X;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A matrix is written and read some columns at a time", "[npy]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy"), whole = folder.file("B.npy");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const auto [rows, cols] : sizes) {
      CAPTURE(rows, cols, grid->rows(), grid->cols());
      // Pieces that begin anywhere, in any order, of any layout; one has no column.
      std::vector<Range> pieces{
          {cols / 2, cols - cols / 2}, {cols / 3, cols / 2 - cols / 3}, {cols, 0}, {0, cols / 3}};
      {
        MatrixWriter<T> writer(path, grid, rows, cols);
        for (const Range& piece : pieces)
          for (const Layout& layout : some_layouts(*grid, rows, piece.size)) {
            DistMatrix<T> A(grid, layout);
            A.fill([&](Index i, Index j) { return element<T>(i, piece.begin + j); });
            writer.write(piece.begin, A);
          }
        CHECK_THROWS_AS(writer.write(cols, DistMatrix<T>(grid, column_blocks(*grid, rows, 1))), ShapeError);
        writer.finish();
      }
      DistMatrix<T> all(grid, column_blocks(*grid, rows, cols));
      all.fill(element<T>);
      write_matrix(whole, all);
      world().barrier();
      if (world().rank() == 0) CHECK(contents(path) == contents(whole));
      const MatrixHeader header = read_matrix_header(world(), path);
      for (const Range& piece : pieces)
        for (const Layout& layout : some_layouts(*grid, rows, piece.size)) {
          auto B = unread_matrix<T>(grid, layout);
          read_columns(path, header, piece.begin, B);
          bool is_right = true;
          const auto block = B.local();
          for (Index j = 0; j < block.cols; ++j)
            for (Index i = 0; i < block.rows; ++i)
              is_right = is_right && block(i, j) == element<T>(B.local_row_range().begin + i,
                                                               piece.begin + B.local_col_range().begin + j);
          CHECK(is_right);
        }
      DistMatrix<T> beyond(grid, column_blocks(*grid, rows, 1));
      CHECK_THROWS_AS(read_columns(path, header, cols, beyond), ShapeError);
      world().barrier();
    }
    MatrixWriter<T> unfinished(folder.file("C.npy"), grid, 3, 2);
  }
  world().barrier();
  if (world().rank() == 0) CHECK(folder.names() == std::vector<std::string>{"A.npy", "B.npy"});
}

TEMPLATE_LIST_TEST_CASE("A matrix written from one layout is read into any other", "[npy]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  std::size_t turn = 0;
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const auto [rows, cols] : sizes) {
      const std::vector<Layout> layouts = some_layouts(*grid, rows, cols);
      DistMatrix<T> A(grid, layouts[turn++ % layouts.size()]);
      A.fill(element<T>);
      write_matrix(path, A);
      world().barrier();

      CAPTURE(rows, cols, grid->rows(), grid->cols(), A.layout().describe());
      if (world().rank() == 0) {
        const auto data = dense<T>(rows, cols, element<T>);
        CHECK(contents(path).substr(128) == bytes_of(data));
        CHECK(folder.names() == std::vector<std::string>{"A.npy"});
      }
      const MatrixHeader header = read_matrix_header(world(), path);
      CHECK(header.type == scalar_type_of<T>);
      CHECK((header.rows == rows && header.cols == cols && header.dimensions == 2 && header.fortran_order));
      for (const Layout& layout : layouts) {
        CAPTURE(layout.describe());
        auto B = unread_matrix<T>(grid, layout);
        read_matrix(path, header, B);
        CHECK(is_right(B));
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Files in C order are read into any layout", "[npy]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string path = folder.file("C.npy");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const auto [rows, cols] : sizes) {
      create_npy(path, scalar_type_of<T>, false, shape_text(rows, cols),
                 dense<T>(cols, rows, [](Index j, Index i) { return element<T>(i, j); }));
      const MatrixHeader header = read_matrix_header(world(), path);
      CHECK_FALSE(header.fortran_order);
      for (const Layout& layout : some_layouts(*grid, rows, cols)) {
        CAPTURE(rows, cols, grid->rows(), grid->cols(), layout.describe());
        auto B = unread_matrix<T>(grid, layout);
        read_matrix(path, header, B);
        CHECK(is_right(B));
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Elements are converted to a type that holds them all, and to no other", "[npy]",
                        Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  const auto check = [&]<Scalar Stored>(Size size, const GridPtr& grid, bool fortran_order) {
    const auto [rows, cols] = size;
    const auto by_rows = [](Index j, Index i) { return element<Stored>(i, j); };
    create_npy(
        path, scalar_type_of<Stored>, fortran_order, shape_text(rows, cols),
        fortran_order ? dense<Stored>(rows, cols, element<Stored>) : dense<Stored>(cols, rows, by_rows));
    const MatrixHeader header = read_matrix_header(world(), path);
    for (const Layout& layout : some_layouts(*grid, rows, cols)) {
      CAPTURE(rows, cols, grid->rows(), grid->cols(), layout.describe(), name_of(header.type));
      auto X = unread_matrix<T>(grid, layout);
      if constexpr (std::numeric_limits<Real<Stored>>::digits <= std::numeric_limits<Real<T>>::digits &&
                    (is_complex<T> || !is_complex<Stored>)) {
        CHECK(common_type(header.type, scalar_type_of<T>) == scalar_type_of<T>);
        read_matrix(path, header, X);
        Index wrong = 0;
        for (Index j = 0; j < X.local().cols; ++j)
          for (Index i = 0; i < X.local().rows; ++i)
            wrong += X.local()(i, j) !=
                     T(element<Stored>(X.local_row_range().begin + i, X.local_col_range().begin + j));
        CHECK(wrong == 0);
      } else {
        CHECK(contains(message_of<ShapeError>([&] { read_matrix(path, header, X); }),
                       std::string(name_of(header.type))));
      }
    }
    world().barrier();
  };
  const std::vector<GridPtr> hosts = all_grids(make_host_backend);
  const auto on_device =
      std::make_shared<const ProcessGrid>(world(), near_square(world().size()), make_device_double());
  for (const ScalarType stored : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128}) {
    for (const bool fortran_order : {false, true})
      for (const Size size : {Size{7, 3}, Size{0, 5}, Size{13, 1}})
        for (const GridPtr& grid : {hosts.front(), hosts.back(), GridPtr(on_device)})
          with_scalar_type(
              stored, [&]<Scalar Stored>() { check.template operator()<Stored>(size, grid, fortran_order); });
  }
  // The block of several tiles.
  const auto alone = std::make_shared<const ProcessGrid>(world(), GridShape{1, 1}, make_host_backend());
  if constexpr (std::same_as<T, std::complex<double>>)
    for (const bool fortran_order : {false, true})
      for (const Size size : {Size{1201, 301}, Size{2, 262145}})
        check.template operator()<float>(size, alone, fortran_order);
}

TEST_CASE("Blocks with gaps between their columns are read and written in place", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  const GridPtr grid = square_grid();
  for (const Layout& layout : some_layouts(*grid, 7, 5)) {
    const DistMatrix<double> shape(grid, layout);
    const Index rows = shape.local().rows;
    const Index cols = shape.local().cols;
    std::vector<double> memory(static_cast<std::size_t>((rows + 3) * cols), -1.0);
    DistMatrix<double> A(grid, layout, {memory.data(), rows, cols, rows + 3});
    A.fill(element<double>);
    write_matrix(path, A);
    std::fill(memory.begin(), memory.end(), -1.0);
    read_matrix(path, read_matrix_header(world(), path), A);
    CHECK(is_right(A));
    CHECK(std::count(memory.begin(), memory.end(), -1.0) >= 3 * cols);
    for (Index j = 0; j < cols; ++j) CHECK(memory[static_cast<std::size_t>(rows + j * (rows + 3))] == -1);
  }
}

TEST_CASE("Blocks larger than the buffers are read and written, on the host and on a device", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  const std::shared_ptr<Backend> backends[] = {make_host_backend(), make_device_double()};
  for (const auto [rows, cols] : {Size{1501, 400}, Size{2, 524289}, Size{524289, 2}}) {
    for (const auto& backend : backends) {
      const auto grid = std::make_shared<const ProcessGrid>(world(), GridShape{1, 1}, backend);
      for (const bool fortran_order : {false, true}) {
        const auto value = [fortran_order](Index a, Index b) {
          return fortran_order ? counter_uniform(1, a, b) : counter_uniform(1, b, a);
        };
        create_npy(path, ScalarType::f64, fortran_order, shape_text(rows, cols),
                   fortran_order ? dense<double>(rows, cols, value) : dense<double>(cols, rows, value));
        DistMatrix<double> A(grid, replicated(rows, cols));
        read_matrix(path, read_matrix_header(world(), path), A);
        Index wrong = 0;
        for (Index j = 0; j < A.local().cols; ++j) {
          for (Index i = 0; i < A.local().rows; ++i) wrong += A.local()(i, j) != counter_uniform(1, i, j);
        }
        CAPTURE(rows, cols, backend->name(), fortran_order);
        CHECK(wrong == 0);
        const std::string copy = folder.file("copy.npy");
        write_matrix(copy, A);
        world().barrier();
        if (fortran_order && world().rank() == 0) CHECK(contents(copy) == contents(path));
        world().barrier();
      }
    }
  }
}

TEST_CASE("A matrix on a device goes through the host", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  const auto device = make_device_double();
  const auto grid = std::make_shared<const ProcessGrid>(world(), near_square(world().size()), device);
  for (const Layout& layout : some_layouts(*grid, 7, 5)) {
    DistMatrix<float> A(grid, layout);
    const Index bytes = A.local().size() * 4;
    for (const bool fortran_order : {false, true}) {
      create_npy(path, ScalarType::f32, fortran_order, "(7, 5)",
                 fortran_order ? dense<float>(7, 5, element<float>)
                               : dense<float>(5, 7, [](Index j, Index i) { return element<float>(i, j); }));
      const Index before = device->bytes_moved();
      read_matrix(path, read_matrix_header(world(), path), A);
      CHECK(is_right(A));
      CHECK(device->bytes_moved() - before == bytes);
    }
    const Index before = device->bytes_moved();
    write_matrix(path, A);
    CHECK(device->bytes_moved() - before == (A.owned() ? bytes : 0));
    world().barrier();
    if (world().rank() == 0)
      CHECK(contents(path).substr(128) == bytes_of(dense<float>(7, 5, element<float>)));
    world().barrier();
  }
}

TEST_CASE("A one-dimensional file is a matrix of one column", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("b.npy");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const Index rows : {0, 1, 10}) {
      for (const Layout& layout : some_layouts(*grid, rows, 1)) {
        create_npy(path, ScalarType::f64, false, shape_text(rows), dense<double>(rows, 1, element<double>));
        auto b = unread_matrix<double>(grid, layout);
        const MatrixHeader header = read_matrix_header(world(), path);
        CHECK(header.dimensions == 1);
        read_matrix(path, header, b);
        CHECK(is_right(b));
        write_matrix(path, b, 1);
        CHECK(read_matrix_header(world(), path).dimensions == 1);
        write_matrix(path, b);
        CHECK(read_matrix_header(world(), path).dimensions == 2);
        world().barrier();
      }
    }
  }
}

TEST_CASE("A matrix that does not fit the file is refused", "[npy]") {
  const GridPtr grid = square_grid();
  DistMatrix<float> A(grid, row_blocks(*grid, 4, 3));
  const auto read_as = [&A](MatrixHeader header) {
    return message_of<ShapeError>([&] { read_matrix("A.npy", header, A); });
  };
  CHECK(contains(read_as({.type = ScalarType::f64, .rows = 4, .cols = 3}), "f64"));
  CHECK(contains(read_as({.type = ScalarType::f32, .rows = 3, .cols = 4}), "is 3 x 4"));
  CHECK(contains(message_of<ShapeError>([&] { write_matrix("A.npy", A, 1); }), "4 x 3"));
  CHECK(contains(message_of<UsageError>([&] { write_matrix("A.npy", A, 3); }), "3 dimensions"));
}

TEST_CASE("A file that cannot be read is an error on all ranks", "[npy]") {
  const ScratchFolder folder;
  const auto refusal = [](const std::string& path) {
    return message_of<InputError>([&] { read_matrix_header(world(), path); });
  };
  const std::string missing = folder.file("missing.npy");
  CHECK(contains(refusal(missing), missing));
  CHECK(contains(refusal(missing), "No such file"));
  CHECK(contains(refusal(folder.file("")), "is a directory"));
  CHECK(contains(refusal("/dev/null"), "is a device"));
  CHECK(contains(refusal(""), "No such file"));
  const std::string pipe = folder.named_pipe("pipe.npy");
  CHECK(contains(refusal(pipe), "pipe"));

  // The file is cut after the header was read, so that the last ranks alone notice.
  const std::string path = folder.file("A.npy");
  create_npy(path, ScalarType::f64, false, "(8, 8)", dense<double>(8, 8, element<double>));
  const MatrixHeader header = read_matrix_header(world(), path);
  world().barrier();
  if (world().rank() == 0)
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(header.data_offset) + 500);
  world().barrier();
  CHECK(contains(refusal(path), "incomplete"));
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    for (const Layout& layout : some_layouts(*grid, 8, 8)) {
      DistMatrix<double> A(grid, layout);
      const std::string cut = message_of<InputError>([&] { read_matrix(path, header, A); });
      CHECK(contains(cut, "the file ends there") == grid->is_member());
      CHECK(contains(cut, "at byte " + std::to_string(header.data_offset + 500)) == grid->is_member());
    }
  }
}
