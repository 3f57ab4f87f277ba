// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/streamed/streamed_matrix.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/message.hpp"
#include "comm/failure/watchdog.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"
#include "io/npy_files.hpp"
#include "streamed/disk/disk_file.hpp"
#include "streamed/disk/read_ahead.hpp"
#include "streamed/scratch_disk.hpp"
#include "support/metered_backend.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Large enough that ranks cut their blocks into some slabs, as long as they may keep few in memory.
constexpr Index m = 1801, n = 1203;
constexpr Index few = 0, some = Index{5} << 20, all = Index{1} << 40;

/// A cheap element that differs from its neighbours.
template <Scalar T>
T element(Index i, Index j) {
  const auto value = static_cast<Real<T>>((i * 37 + j * 101 + i * j) % 1009) / Real<T>(512) - Real<T>(1);
  return number<T>(1, 2) * T(value);
}

template <Scalar T>
DistMatrix<T> matrix_on(const GridPtr& grid, Index rows = m, Index cols = n) {
  return filled(grid, matrix_layout(Algorithm::stationary_a, *grid, rows, cols), element<T>);
}

template <Scalar T>
OperatorPtr<T> packed_on(const GridPtr& grid, bool column_stable, Index rows = m, Index cols = n) {
  return matrix_mult(Algorithm::stationary_a, matrix_on<T>(grid, rows, cols),
                     {.column_stable = column_stable, .storage = Storage::packed});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Products of a streamed matrix have the bits of packed ones", "[streamed_matrix]",
                        Scalars) {
  using T = TestType;
  constexpr Index many = 131;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    for (const bool column_stable : {false, true}) {
      const DistMatrix<T> A = matrix_on<T>(grid);
      const OperatorPtr<T> packed = packed_on<T>(grid, column_stable);
      struct Product {
        Whole<T> X, Y;
        std::vector<T> expected;
      };
      std::vector<Product> known;
      for (const Index nrhs : {Index{0}, Index{1}, Index{7}, many}) {
        if (!grid->is_member()) continue;
        const Whole<T> X = fractions<T>(2, n, nrhs), Y = fractions<T>(3, m, nrhs);
        known.push_back({X, Y, products(*packed, X, Y)});
      }
      for (const Index memory : {few, some, all}) {
        const auto streamed = stream_matrix<T>(
            A, {.scratch = folder.file(""), .memory = memory, .column_stable = column_stable});
        CHECK(streamed->has_one_pass());
        if (!grid->is_member()) continue;
        CHECK(streamed->frobenius_norm() == Approx(frobenius_norm(A)));
        for (const auto& [X, Y, expected] : known) {
          if (X.cols == many && memory == all) continue;  // in memory, they are multiplied like the slabs of some
          INFO(describe(*grid) << ": " << memory << " bytes in memory, " << X.cols
                               << " columns, column-stable: " << column_stable);
          CHECK(products(*streamed, X, Y) == expected);
        }
        const StreamedSizes sizes =
            streamed_sizes<T>(m, n, 1, grid->shape(), grid->my_row(), grid->my_col(), memory);
        CHECK((streamed->bytes_read() > 0) == (sizes.disk > 0));
        CHECK((memory != all || sizes.disk == 0));
        CHECK(dot_test(*streamed).passed);
      }
      if (std::is_same_v<Real<T>, float> || column_stable) break;
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A streamed matrix may be empty, small, low or narrow", "[streamed_matrix]",
                        Scalars) {
  using T = TestType;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    for (const auto& [rows, cols] :
         {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {2, 5}, {3, 40000}, {60000, 2}}) {
      const auto streamed = stream_matrix<T>(matrix_on<T>(grid, rows, cols), {.scratch = folder.file("")});
      if (!grid->is_member()) continue;
      INFO(describe(*grid) << ": " << rows << " x " << cols);
      const Whole<T> X = fractions<T>(2, cols, 3), Y = fractions<T>(3, rows, 3);
      CHECK(products(*streamed, X, Y) == products(*packed_on<T>(grid, false, rows, cols), X, Y));
    }
  }
}

TEST_CASE("The norm of a streamed matrix is right at any scale", "[streamed_matrix]") {
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : compact_grids()) {
    if (!is_on_host(grid)) continue;
    const DistMatrix<double> A = matrix_on<double>(grid);
    for (const int power : {-1000, -520, 520, 1000}) {
      DistMatrix<double> scaled = A.clone();
      scaled *= std::ldexp(1.0, power);
      const auto streamed = stream_matrix<double>(scaled, {.scratch = folder.file(""), .memory = some});
      if (!grid->is_member()) continue;
      CAPTURE(describe(*grid), power);
      CHECK(std::ldexp(streamed->frobenius_norm(), -power) == Approx(frobenius_norm(A)));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A matrix in a file is streamed as one in memory is", "[streamed_matrix]", Scalars) {
  using T = TestType;
  using Stored = std::conditional_t<is_complex<T>, std::complex<float>, float>;
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    const ScratchFolder folder(disk);
    write_matrix(folder.file("columns.npy"), matrix_on<T>(grid));
    write_matrix(folder.file("narrow.npy"), matrix_on<Stored>(grid));
    write_array(folder.file("rows.npy"), Dims({Partition::balanced(m, 1), Partition::balanced(n, 1)}),
                filled(grid, {Cut::uncut(m * n), Cut::uncut(1)},
                       [](Index k, Index) { return element<T>(k / n, k % n); }));
    const OperatorPtr<T> packed = packed_on<T>(grid, false);
    for (const char* name : {"columns.npy", "narrow.npy", "rows.npy"}) {
      INFO(describe(*grid) << ": " << name);
      const std::string file = folder.file(name);
      const MatrixHeader header = read_matrix_header(world(), file);
      CHECK(header.fortran_order == (std::string(name) != "rows.npy"));
      const auto streamed =
          stream_matrix<T>(grid, file, header, {.scratch = folder.file(""), .memory = some});
      if (!grid->is_member()) continue;
      const Whole<T> X = fractions<T>(2, n, 2), Y = fractions<T>(3, m, 2);
      CHECK(products(*streamed, X, Y) == products(*packed, X, Y));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A matrix is read in its file, where that has rows", "[streamed_matrix]", Scalars) {
  using T = TestType;
  using Stored = std::conditional_t<is_complex<T>, std::complex<float>, float>;
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    const ScratchFolder folder(disk);
    const auto write_rows = [&]<Scalar Element>(const char* name, Element) {
      write_array(folder.file(name), Dims({Partition::balanced(m, 1), Partition::balanced(n, 1)}),
                  filled(grid, {Cut::uncut(m * n), Cut::uncut(1)},
                         [](Index k, Index) { return element<Element>(k / n, k % n); }));
      return folder.file(name);
    };
    const std::string rows = write_rows("rows.npy", T());
    const MatrixHeader header = read_matrix_header(world(), rows);
    CHECK(in_place_run(world(), rows, header, grid->shape()) >= n / grid->shape().cols * Index{sizeof(T)});
    const OperatorPtr<T> packed = packed_on<T>(grid, false);
    const Whole<T> X = fractions<T>(2, n, 2), Y = fractions<T>(3, m, 2);
    const auto expected = grid->is_member() ? products(*packed, X, Y) : std::vector<T>();
    const auto norm = grid->is_member() ? frobenius_norm(matrix_on<T>(grid)) : 0;
    for (const Index memory : {few, some, all}) {
      INFO(describe(*grid) << ": " << memory << " bytes in memory");
      const auto streamed = stream_matrix<T>(grid, rows, header, {.memory = memory, .in_place = true});
      if (!grid->is_member()) continue;
      CHECK(streamed->frobenius_norm() == Approx(norm));
      CHECK(products(*streamed, X, Y) == expected);
      CHECK(dot_test(*streamed).passed);
    }
    // A file with other contents is refused on all ranks.
    const auto refusal = [&](const std::string& name, const std::string& tiles = "") {
      const MatrixHeader of = read_matrix_header(grid->comm(), name);
      return message_of<UsageError>(
          [&] { static_cast<void>(stream_matrix<T>(grid, name, of, {.tiles = tiles, .in_place = true})); });
    };
    write_matrix(folder.file("columns.npy"), matrix_on<T>(grid));
    const std::string narrow = write_rows("narrow.npy", Stored());
    if (!grid->is_member()) continue;
    CHECK(contains(refusal(folder.file("columns.npy")), "one column after the other"));
    if (!std::is_same_v<T, Stored>) CHECK(contains(refusal(narrow), "elements of type"));
    CHECK(contains(refusal(rows, folder.file("tiles")), "no tiles that could stay"));
  }
}

TEST_CASE("A file that changes while it is read in place is an error on all ranks", "[streamed_matrix]") {
  using T = double;
  const ScratchFolder folder(disk);
  const std::string name = folder.file("A.npy");
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    INFO(describe(*grid));
    write_array(name, Dims({Partition::balanced(m, 1), Partition::balanced(n, 1)}),
                filled(grid, {Cut::uncut(m * n), Cut::uncut(1)},
                       [](Index k, Index) { return element<T>(k / n, k % n); }));
    const MatrixHeader header = read_matrix_header(grid->comm(), name);
    const auto streamed = stream_matrix<T>(grid, name, header, {.memory = few, .in_place = true});
    const Whole<T> X = fractions<T>(2, n, 3), Y = fractions<T>(3, m, 3);
    const auto put = [&](double value) {
      grid->comm().barrier();
      if (is_last_rank(*grid)) {
        std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(header.data_offset + ((m - 2) * n + n - 2) * Index{sizeof(T)});
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
      }
      grid->comm().barrier();
    };
    put(17);
    // The first product has what was read ahead of it.
    for (int turn = 0; turn < 2; ++turn) {
      const std::string error = message_of<Error>([&] { static_cast<void>(products(*streamed, X, Y)); });
      if (turn == 1) CHECK(contains(error, "has the file changed?"));
    }
    put(element<T>(m - 2, n - 2));
    CHECK(products(*streamed, X, Y) == products(*packed_on<T>(grid, false), X, Y));
    std::filesystem::resize_file(name, 200);
    grid->comm().barrier();
    for (int turn = 0; turn < 2; ++turn) {
      const std::string error = message_of<Error>([&] { static_cast<void>(products(*streamed, X, Y)); });
      if (turn == 1) CHECK(contains(error, "the file ends there"));
    }
  }
}

TEST_CASE("Tiles that stay are taken again, unless the matrix is another", "[streamed_matrix]") {
  using T = double;
  namespace fs = std::filesystem;
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid)) continue;
    INFO(describe(*grid));
    const ScratchFolder folder(disk);
    const std::string name = folder.file("A.npy");
    write_matrix(name, matrix_on<T>(grid));
    const MatrixHeader header = read_matrix_header(world(), name);
    const auto own = [&] {
      const std::string prefix = message("row-", grid->my_row(), "-col-", grid->my_col(), ".");
      std::vector<fs::path> found;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder.file("tiles"))) {
        const std::string file = entry.path().filename();
        if (file.starts_with(prefix) && file.ends_with(".tiles")) found.push_back(entry.path());
      }
      REQUIRE(found.size() == 1);
      return found.front();
    };
    const OperatorPtr<T> packed = packed_on<T>(grid, false);
    const auto stream = [&](Index memory) {
      return stream_matrix<T>(grid, name, header, {.memory = memory, .tiles = folder.file("tiles")});
    };
    const auto made_at = [&] {
      return grid->is_member() ? fs::last_write_time(own()) : fs::file_time_type();
    };
    const Whole<T> X = fractions<T>(2, n, 2), Y = fractions<T>(3, m, 2);
    const auto has_products = [&](const LinearOperator<T>& op, const LinearOperator<T>& expected) {
      return !grid->is_member() || products(op, X, Y) == products(expected, X, Y);
    };
    CHECK(has_products(*stream(few), *packed));
    const auto first = made_at();
    for (const Index memory : {few, some, all}) {
      const auto again = stream(memory);
      CHECK(made_at() == first);
      CHECK(has_products(*again, *packed));
      CHECK((!grid->is_member() || again->frobenius_norm() == Approx(frobenius_norm(matrix_on<T>(grid)))));
    }
    world().barrier();
    // Another file of the same name and shape.
    const DistMatrix<T> other = filled(grid, matrix_layout(Algorithm::stationary_a, *grid, m, n),
                                       [](Index i, Index j) { return element<T>(i + 1, j); });
    write_matrix(name, other);
    world().barrier();
    const auto anew = stream(few);
    if (grid->is_member()) CHECK(made_at() > first);
    CHECK(has_products(*anew, *stream_matrix<T>(other, {.scratch = disk})));
    // A tile that has changed on the disk is found when it is read, or kept in memory.
    world().barrier();
    const bool is_last = grid->is_member() && is_last_rank(*grid);
    if (is_last) {
      std::fstream file(own(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(1000).put('x');
    }
    world().barrier();
    if (grid->is_member()) {
      CHECK(contains(message_of<Error>([&] { static_cast<void>(products(*stream(few), X, Y)); }),
                     "are not those"));
    } else {
      stream(few);
    }
    // Those that are to be in memory are read at once, and made anew.
    const auto damaged = made_at();
    const auto mended = stream(all);
    if (is_last) CHECK(made_at() > damaged);
    CHECK(has_products(*mended, *stream_matrix<T>(other, {.scratch = disk})));
  }
}

TEST_CASE("Tiles that were cut for much memory are no burden where there is little", "[streamed_matrix]") {
  using T = double;
  const ScratchFolder folder(disk);
  const auto backend = std::make_shared<MeteredBackend>();
  const auto grid = std::make_shared<const ProcessGrid>(world(), GridShape{1, world().size()}, backend);
  write_matrix(folder.file("A.npy"), matrix_on<T>(grid, 60000, 40));
  const MatrixHeader header = read_matrix_header(world(), folder.file("A.npy"));
  for (const Index memory : {Index{1} << 28, few}) {
    const Index before = backend->bytes_in_use();
    const auto streamed = stream_matrix<T>(grid, folder.file("A.npy"), header,
                                           {.memory = memory, .tiles = folder.file("tiles")});
    const StreamedSizes sizes =
        streamed_sizes<T>(60000, 40, 1, grid->shape(), grid->my_row(), grid->my_col(), memory);
    CHECK(backend->bytes_in_use() - before <= std::max(sizes.memory, memory));
  }
}

TEST_CASE("A streamed matrix takes the memory and the disk that its sizes say", "[streamed_matrix]") {
  using T = double;
  const ScratchFolder folder(disk);
  const auto backend = std::make_shared<MeteredBackend>();
  for (const GridPtr& grid : grids_of(all_shapes(world().size()), [&] { return backend; })) {
    if (!grid->is_member()) continue;
    const DistMatrix<T> A = matrix_on<T>(grid);
    for (const Index memory : {few, some, all}) {
      INFO(describe(*grid) << ": " << memory << " bytes in memory");
      const StreamedSizes sizes =
          streamed_sizes<T>(m, n, 2, grid->shape(), grid->my_row(), grid->my_col(), memory);
      const Index before = backend->bytes_in_use();
      const auto streamed = stream_matrix<T>(A, {.scratch = folder.file(""), .memory = memory});
      CHECK(backend->bytes_in_use() - before == sizes.memory);
      if (memory == some) CHECK(sizes.memory <= some);
      CHECK(nameless_bytes(folder.file("")) == sizes.disk);
      // Aligned up, and with what fills tiles, it is A.
      CHECK(sizes.memory + sizes.disk >= A.local().size() * Index{sizeof(T)});
      CHECK(sizes.disk <= A.local().size() * Index{sizeof(T)} * 11 / 10);
    }
  }
}

TEST_CASE("A disk that is full or not there is an error on all ranks", "[streamed_matrix]") {
  using T = double;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    const DistMatrix<T> A = matrix_on<T>(grid);
    struct statfs shared {};
    if (statfs("/dev/shm", &shared) == 0 && shared.f_type == TMPFS_MAGIC)
      CHECK(contains(
          message_of<Error>([&] { static_cast<void>(stream_matrix<T>(A, {.scratch = "/dev/shm"})); }),
          "is in memory"));
    CHECK(contains(
        message_of<Error>([&] { static_cast<void>(stream_matrix<T>(A, {.scratch = folder.file("none")})); }),
        "cannot make a file"));
    const FileSizeLimit limit(grid->my_row() == 0 && grid->my_col() == 0 ? 1 << 16 : RLIM_INFINITY);
    CHECK_THROWS_AS(stream_matrix<T>(A, {.scratch = folder.file("")}), OutputError);
    CHECK(nameless_files(folder.file("")).empty());
  }
}

TEST_CASE("Ranks know that one works while its reader begins anew, or ends", "[streamed_matrix]") {
  Watchdog* const watchdog = Watchdog::current();
  if (watchdog == nullptr || !watchdog->thread_answers()) return;
  constexpr Index block = DiskFile::block;
  const ScratchFolder folder(disk);
  const Buffer<std::byte> memory(make_host_backend(), 3 * block);
  void* first = memory.data();
  auto room = static_cast<std::size_t>(memory.size());
  auto* const ring =
      static_cast<std::byte*>(std::align(std::size_t{block}, 2 * std::size_t{block}, first, room));
  const double limit = watchdog->set_timeout_seconds(2);
  if (world().rank() == 0) {
    const auto file = std::make_shared<DiskFile>(DiskFile::nameless(folder.file(""), block));
    file->write(ring, block, 0);
    const FileParts source(file, {{0, block}});
    std::atomic<int> checks = 0;
    const auto slow = [&checks](Index, const std::byte*) {
      ++checks;
      std::this_thread::sleep_for(std::chrono::seconds(4));
    };
    const auto await_checks = [&checks](int count) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (checks < count && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CHECK(checks >= count);
    };
    ReadAhead reader(source, {ring, 2, block}, {{{0}, 0}, {{0}, 1}}, slow);
    await_checks(2);  // in both slots
    reader.begin_pass(1);
    await_checks(3);
  }
  CHECK_NOTHROW(world().barrier());
  watchdog->set_timeout_seconds(limit);
}

TEST_CASE("What cannot be read, or was not written, is an error on all ranks, and not for good",
          "[streamed_matrix]") {
  using T = double;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : all_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    INFO(describe(*grid));
    const auto streamed = stream_matrix<T>(matrix_on<T>(grid), {.scratch = folder.file("")});
    const Whole<T> X = fractions<T>(2, n, 3), Y = fractions<T>(3, m, 3);
    const bool is_last = is_last_rank(*grid);
    const auto flip = [&] {
      if (is_last) flip_byte(folder.file(""), 200000);
      grid->comm().barrier();
    };
    flip();
    for (int turn = 0; turn < 2; ++turn)
      CHECK(contains(message_of<Error>([&] { static_cast<void>(products(*streamed, X, Y)); }),
                     "are not those"));
    DistMatrix<T> B = filled(grid, streamed->range().layout(2), element<T>),
                  solution(grid, streamed->domain().layout(2));
    CHECK_THROWS_AS(solve(Solver::cgls, *streamed, B, solution, {.max_iterations = 3}), InputError);
    flip();
    CHECK(products(*streamed, X, Y) == products(*packed_on<T>(grid, false), X, Y));

    const Index bytes = nameless_bytes(folder.file(""));
    if (is_last) CHECK(ftruncate(nameless_files(folder.file("")).at(0), bytes / 2) == 0);
    grid->comm().barrier();
    for (int turn = 0; turn < 2; ++turn)
      CHECK(contains(message_of<Error>([&] { static_cast<void>(products(*streamed, X, Y)); }),
                     "the file ends there"));
  }
}
