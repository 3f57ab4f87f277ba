// SPDX-License-Identifier: BSD-3-Clause
#include <sys/vfs.h>

#include <algorithm>
#include <numeric>

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/solve/solver.hpp"
#include "io/npy_files.hpp"
#include "streamed/scratch_disk.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// So large that ranks have some parts, as long as they may keep few in memory.
constexpr Index m = 2003, n = 1501;
constexpr Index few = 0, some = Index{3} << 20, all = Index{1} << 40;

/// Zeros, waves and random numbers: tiles that are empty, of low rank, and dense.
template <Scalar T>
T element(Index i, Index j) {
  return j < 300 ? T(0) : j < 700 ? Waves<T>{m, n}(i, j) : T(10) * counter_random<T>(4, i, j);
}

/// Saves the compressed matrix in orders of rows and columns that are not their own.
template <Scalar T>
MatrixHeader save(const std::string& directory) {
  std::vector<Index> col_order(at(n));
  std::iota(col_order.rbegin(), col_order.rend(), Index{0});
  const GridPtr grid = all_grids().front();
  compress(placed<T>(grid, m, n, element<T>), {.tolerance = 1e-6,
                                               .tile = 100,
                                               .row_order = Waves<T>::order(m),
                                               .col_order = col_order,
                                               .directory = directory});
  world().barrier();
  return read_compressed_header(world(), directory);
}

/// The products of an operator with blocks within larger ones.
template <Scalar T>
std::vector<T> embedded_products(const LinearOperator<T>& A) {
  const GridPtr& grid = A.domain().grid;
  std::vector<T> results;
  for (const bool forward : {true, false}) {
    const Space &from = forward ? A.domain() : A.range(), &to = forward ? A.range() : A.domain();
    EmbeddedMatrix<T> X(grid, from.layout(3), 2, fractions<T>(4, from.dimension(), 3)),
        Y(grid, to.layout(3), 5, fractions<T>(5, to.dimension(), 3));
    DistMatrix<T> out = Y.matrix();
    forward ? A.apply(T(2), X.matrix(), T(1), out) : A.apply_adjoint(T(2), X.matrix(), T(1), out);
    CHECK((X.surroundings_untouched() && Y.surroundings_untouched()));
    for (Index j = 0; j < out.local().cols; ++j)
      for (Index i = 0; i < out.local().rows; ++i) results.push_back(out.local()(i, j));
  }
  return results;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Products of a compressed matrix on disks have the bits of one in memory",
                        "[compressed_on_disk]", Scalars) {
  using T = TestType;
  const ScratchFolder folder(disk);
  const std::string saved = folder.file("saved");
  const MatrixHeader header = save<T>(saved);
  const SavedCompressed known(world(), saved);
  CHECK((known.report().dense_tiles > 0 && known.report().empty_tiles > 0 &&
         known.report().dense_tiles + known.report().empty_tiles < known.report().tiles));
  bool is_read = false;
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    const auto in_memory = read_compressed<T>(grid, saved, header);
    for (const Index memory : {few, some, all}) {
      INFO(describe(*grid) << ": " << memory << " bytes in memory");
      const auto on_disk = read_compressed<T>(grid, saved, header,
                                              StreamOptions{.scratch = folder.file(""), .memory = memory});
      if (!grid->is_member()) continue;
      for (const Index nrhs : {0, 1, 7}) {
        const Whole<T> X = fractions<T>(2, n, nrhs), Y = fractions<T>(3, m, nrhs);
        CHECK(products(*on_disk, X, Y) == products(*in_memory, X, Y));
      }
      CHECK(embedded_products(*on_disk) == embedded_products(*in_memory));
      const StreamedSizes sizes =
          known.sizes_on_disk(grid->shape(), grid->my_row(), grid->my_col(), 1, memory);
      CHECK((on_disk->bytes_read() > 0) == (sizes.disk > 0));
      CHECK((memory != all || sizes.disk == 0));
      is_read = is_read || sizes.disk > 0;
      CHECK(on_disk->report().bytes == in_memory->report().bytes);
      CHECK(dot_test(*on_disk).passed);
    }
  }
  CHECK((is_read || world().size() > 4));
}

TEST_CASE("A product, or an iteration, reads what is on disks once in each direction",
          "[compressed_on_disk]") {
  using T = double;
  const ScratchFolder folder(disk);
  const std::string saved = folder.file("saved");
  const MatrixHeader header = save<T>(saved);
  const SavedCompressed known(world(), saved);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    const auto A =
        read_compressed<T>(grid, saved, header, StreamOptions{.scratch = folder.file(""), .memory = few});
    const StreamedSizes sizes = known.sizes_on_disk(grid->shape(), grid->my_row(), grid->my_col(), 1, few);
    DistMatrix<T> X(grid, A->domain().layout(1)), Y(grid, A->range().layout(1));
    X.set_zero();
    constexpr Index turns = 5;
    for (Index turn = 0; turn < turns; ++turn) {
      A->apply(T(1), X, T(0), Y);
      A->apply_adjoint(T(1), Y, T(0), X);
    }
    // With what is read ahead for the next product, which fits into the memory.
    CHECK(A->bytes_read() >= 2 * turns * sizes.disk);
    CHECK(A->bytes_read() <= 2 * turns * sizes.disk + sizes.memory);
  }
}

TEST_CASE("A compressed matrix on disks takes the memory and the disk that its sizes say",
          "[compressed_on_disk]") {
  using T = double;
  const ScratchFolder folder(disk);
  const std::string saved = folder.file("saved");
  const MatrixHeader header = save<T>(saved);
  const SavedCompressed known(world(), saved);
  const auto backend = std::make_shared<MeteredBackend>();
  for (const GridPtr& grid : grids_of(all_shapes(world().size()), [&] { return backend; })) {
    if (!grid->is_member()) continue;
    for (const Index memory : {few, some, all}) {
      INFO(describe(*grid) << ": " << memory << " bytes in memory");
      const auto sizes = [&](Index columns) {
        return known.sizes_on_disk(grid->shape(), grid->my_row(), grid->my_col(), columns, memory);
      };
      const Index before = backend->bytes_in_use();
      const auto A = read_compressed<T>(grid, saved, header,
                                        StreamOptions{.scratch = folder.file(""), .memory = memory});
      CHECK(backend->bytes_in_use() - before == sizes(0).memory + sizes(0).workspace);
      if (memory == some) CHECK(sizes(0).memory <= some);
      CHECK(nameless_bytes(folder.file("")) == sizes(0).disk);
      const Partition columns = A->domain().layout(3).cols.partition;
      CHECK(A->kept_bytes(Partition()) + A->scratch_bytes(ProductKind::forward, columns) ==
            sizes(3).memory + sizes(3).workspace);
      CHECK(sizes(0).memory + sizes(0).disk >=
            known.bytes_of_rank(grid->shape(), grid->my_row(), grid->my_col(), 0) - sizes(0).workspace);
    }
  }
}

TEST_CASE("Disks of a compressed matrix that are full, or fail, are errors on all ranks, and not for good",
          "[compressed_on_disk]") {
  using T = double;
  const ScratchFolder folder(disk);
  const std::string saved = folder.file("saved"), place = folder.file("");
  const MatrixHeader header = save<T>(saved);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    INFO(describe(*grid));
    const auto read = [&](const StreamOptions& options) {
      return read_compressed<T>(grid, saved, header, options);
    };
    const auto refused = [&](const StreamOptions& options, const char* text) {
      CHECK(contains(message_of<Error>([&] { static_cast<void>(read(options)); }), text));
    };
    refused({.scratch = folder.file("none")}, "cannot make a file");
    refused({.memory = -1}, "the memory cannot be -1 bytes");
    refused({.column_stable = true}, "neither column-stable");
    struct statfs shared {};
    if (statfs("/dev/shm", &shared) == 0 && shared.f_type == TMPFS_MAGIC)
      refused({.scratch = "/dev/shm"}, "is in memory");
    {
      const FileSizeLimit limit(is_last_rank(*grid) ? 1 << 16 : RLIM_INFINITY);
      CHECK_THROWS_AS(read({.scratch = place}), OutputError);
    }
    CHECK(nameless_files(place).empty());

    const auto A = read({.scratch = place});
    const Whole<T> X = fractions<T>(2, n, 3), Y = fractions<T>(3, m, 3);
    const bool is_last = is_last_rank(*grid);
    const auto flip = [&] {
      if (is_last) flip_byte(place, 60000);
      grid->comm().barrier();
    };
    flip();
    for (int turn = 0; turn < 2; ++turn)
      CHECK(contains(message_of<Error>([&] { static_cast<void>(products(*A, X, Y)); }), "are not those"));
    DistMatrix<T> B = filled(grid, A->range().layout(2), element<T>), solution(grid, A->domain().layout(2));
    CHECK_THROWS_AS(solve(Solver::cgls, *A, B, solution, {.max_iterations = 3}), InputError);
    flip();
    CHECK(products(*A, X, Y) == products(*read_compressed<T>(grid, saved, header), X, Y));
    if (is_last) CHECK(ftruncate(nameless_files(place).at(0), nameless_bytes(place) / 2) == 0);
    grid->comm().barrier();
    for (int turn = 0; turn < 2; ++turn)
      CHECK(
          contains(message_of<Error>([&] { static_cast<void>(products(*A, X, Y)); }), "the file ends there"));
  }
}
