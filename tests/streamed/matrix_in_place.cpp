// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/matrix_in_place.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index block = TileFile::block;

template <Scalar T>
std::vector<T> matrix(Index m, Index n) {
  std::vector<T> A(static_cast<std::size_t>(m * n));
  for (std::size_t k = 0; k < A.size(); ++k) A[k] = T(static_cast<Real<T>>(k + 1));
  if constexpr (is_complex<T>)
    for (T& element : A) element += T(0, static_cast<Real<T>>(0.5));
  return A;
}

/// A, m × n, in boxes of this shape, which lie in a file from the last to the first, with gaps between them,
/// and the last element at its end.
template <Scalar T>
MatrixBoxes write_boxes(const std::string& path, Index m, Index n, Index rows, Index cols) {
  const std::vector<T> A = matrix<T>(m, n);
  MatrixBoxes boxes{path, rows, cols, n, {}};
  const Index down = (m + rows - 1) / rows, count = down * boxes.across(), gap = 24 * Index{sizeof(T)},
              bytes = rows * cols * Index{sizeof(T)};
  for (Index k = 0; k < count; ++k) boxes.offsets.push_back((count - 1 - k) * (bytes + gap) + gap);
  std::vector<char> file(static_cast<std::size_t>(count * (bytes + gap)), '\xff');
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const Index offset = boxes.offsets[static_cast<std::size_t>(i / rows * boxes.across() + j / cols)] +
                           (i % rows * cols + j % cols) * Index{sizeof(T)};
      const T* const from = &A[static_cast<std::size_t>(i * n + j)];
      std::copy_n(reinterpret_cast<const char*>(from), sizeof(T), file.data() + offset);
    }
  std::ofstream(path, std::ios::binary).write(file.data(), static_cast<std::streamsize>(file.size()));
  return boxes;
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
std::unique_ptr<std::byte, Free> aligned(Index bytes) {
  const auto whole = static_cast<std::size_t>((bytes + block - 1) / block * block);
  std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(block), whole)));
  std::fill_n(memory.get(), whole, std::byte{255});
  return memory;
}

}  // namespace

namespace {

std::string scratch_file() {
  const std::string name = "gridlops-boxes-" + std::to_string(::getpid());
  return (std::filesystem::temp_directory_path() / name).string();
}

/// Whether all slabs of this block, in any pieces, have the tiles of the block in memory.
template <Scalar T>
bool has_tiles_of(MatrixView<const T> block_in_memory, const MatrixInPlace<T>& in_place,
                  const TileOrder<T>& order, const Slabs& slabs) {
  using R = Real<T>;
  const auto slab = aligned(slabs.bytes_each()), staging = aligned(slabs.parts.staging_each);
  std::vector<R> packed(static_cast<std::size_t>(order.height() * order.depth()));
  bool is_same = true;
  for (Index number = 0; number < slabs.count(); ++number) {
    std::fill_n(slab.get(), slabs.bytes_each(), std::byte{255});
    for (Index piece = 0; piece < in_place.pieces(number); ++piece)
      is_same = in_place.read(number, piece, slab.get(), staging.get()) > 0 && is_same;
    const Range strips = slabs.strips_of(number);
    for (Index strip = strips.begin; strip < strips.end(); ++strip) {
      const Range rows = order.strip_rows(strip);
      for (Index col = 0; col < order.cols(); col += order.depth()) {
        const Range cols{col, std::min(order.depth(), order.cols() - col)};
        order.pack(block_in_memory.block(rows, cols), col, packed.data());
        const auto* const found =
            reinterpret_cast<const R*>(slab.get()) + order.place(strips.size, strip - strips.begin, col);
        is_same = is_same && std::equal(found, found + order.height() * order.tile_cols(col), packed.begin());
      }
    }
  }
  return is_same;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A block in boxes has the tiles of one in memory", "", Scalars) {
  using T = TestType;
  constexpr Index m = 151, n = 437;
  const std::string path = scratch_file();
  std::vector<T> by_columns(static_cast<std::size_t>(m * n));
  transpose<T>({matrix<T>(m, n).data(), n, m}, {by_columns.data(), m, n});
  const MatrixView<const T> A(by_columns.data(), m, n);
  for (const auto& [box_rows, box_cols] : std::vector<std::pair<Index, Index>>{
           {m, n}, {7, 5}, {20, 64}, {1, n}, {m, 1}, {50, 437}, {32, 300}, {m + 9, n + 11}}) {
    const MatrixBoxes boxes = write_boxes<T>(path, m, n, box_rows, box_cols);
    for (const auto& [rows, cols] : std::vector<std::pair<Range, Range>>{{{0, m}, {0, n}},
                                                                         {{75, 76}, {0, n}},
                                                                         {{0, m}, {218, 219}},
                                                                         {{3, 1}, {5, 1}},
                                                                         {{38, 50}, {64, 200}}}) {
      const TileOrder<T> order(rows.size, cols.size, *kernel_choice().set);
      // With little staging memory a row may need some reads.
      for (const auto& [strips_each, has_little_staging] :
           std::vector<std::pair<Index, bool>>{{1, false}, {3, true}, {100, false}, {100, true}}) {
        CAPTURE(box_rows, box_cols, rows.begin, rows.size, cols.begin, cols.size, strips_each,
                has_little_staging);
        Slabs slabs(order, 0, strips_each, true);
        CHECK(slabs.strips_each == std::min(strips_each, order.strips()));
        if (has_little_staging) slabs.parts.staging_each = 3 * block;
        const MatrixInPlace<T> in_place(boxes, rows, cols, order, slabs);
        CHECK(has_tiles_of(A.block(rows, cols), in_place, order, slabs));
      }
    }
  }
  std::filesystem::remove(path);
}

TEST_CASE("A slab may have some pieces") {
  using T = double;
  constexpr Index m = 2500, n = 437;
  const std::string path = scratch_file();
  std::vector<T> by_columns(static_cast<std::size_t>(m * n));
  transpose<T>({matrix<T>(m, n).data(), n, m}, {by_columns.data(), m, n});
  const TileOrder<T> order(m, n, *kernel_choice().set);
  const Slabs slabs(order, 0, order.strips(), true);
  const MatrixInPlace<T> in_place(write_boxes<T>(path, m, n, m, n), {0, m}, {0, n}, order, slabs);
  CHECK(in_place.pieces(0) > 1);
  CHECK(has_tiles_of<T>({by_columns.data(), m, n}, in_place, order, slabs));
  std::filesystem::remove(path);
}

TEST_CASE("Runs are as long as rows, boxes, and the columns of a rank make them") {
  const auto run = [](Index box_rows, Index box_cols, Range cols) {
    return bytes_of_run({"", box_rows, box_cols, 1000, {}}, cols, 24, 8);
  };
  CHECK(run(500, 1000, {0, 1000}) == 24 * 8000);
  CHECK(run(500, 1000, {0, 500}) == 8 * 500);
  CHECK(run(10, 1000, {0, 1000}) == 10 * 8000);
  CHECK(run(500, 100, {0, 500}) == 24 * 800);
  CHECK(run(500, 300, {900, 100}) == 24 * 800);  // all columns that the last box has
  CHECK(run(500, 100, {50, 100}) == 8 * 50);
}
