// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "compressed/compressed_matrix.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops {

namespace {

void require_order(const std::vector<Index>& order, Index count, const char* lines) {
  if (order.empty()) return;
  require<UsageError>(std::ssize(order) == count, "compress: there are ", count, " ", lines,
                      ", and their order has ", order.size(), " indices");
  std::vector<bool> seen(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    require<UsageError>(0 <= order[k] && order[k] < count && !seen[at(order[k])], "compress: index number ",
                        k, " of the order of ", lines, " is ", order[k], "; each index from 0 to ", count - 1,
                        " must occur once");
    seen[at(order[k])] = true;
  }
}

/// Cuts the rows of a block, or its columns, into tiles of about equal size.
TileLines lines_of(Range mine, const std::vector<Index>& order, Index tile) {
  TileLines lines;
  const Index count = (mine.size + tile - 1) / tile;
  for (Index k = 0; k < count; ++k) lines.sizes.push_back(balanced_part(mine.size, count, k).size);
  for (Index k = 0; order.empty() && k < mine.size; ++k) lines.order.push_back(k);
  for (const Index index : order)
    if (mine.begin <= index && index < mine.end()) lines.order.push_back(index - mine.begin);
  return lines;
}

/// Rows of a block in the order of the tiles, divided by a power of two, in double precision.
template <Scalar T>
class Panel {
 public:
  using S = Accumulator<T>;

  Panel(MatrixView<const T> A, const TileLines& cols, int power) : A_(A), cols_(cols), power_(power) {}

  void read(std::span<const Index> rows) {
    elements_.resize(rows.size() * at(A_.cols));
    rows_ = std::ssize(rows);
    for (Index j = 0; j < A_.cols; ++j) {
      const T* const column = A_.column(cols_.order[at(j)]);
      S* const to = elements_.data() + j * rows_;
      for (Index i = 0; i < rows_; ++i) to[i] = scaled(column[rows[at(i)]]);
    }
  }
  MatrixView<const S> columns(Range range) const {
    return MatrixView<const S>(elements_.data(), rows_, A_.cols).col_block(range);
  }

 private:
  S scaled(T value) const {
    if constexpr (is_complex<T>) {
      return {std::ldexp(double{value.real()}, -power_), std::ldexp(double{value.imag()}, -power_)};
    } else {
      return std::ldexp(double{value}, -power_);
    }
  }

  MatrixView<const T> A_;
  const TileLines& cols_;
  int power_;
  std::vector<S> elements_;
  Index rows_ = 0;
};

template <Scalar T>
TiledBlock compress_block(MatrixView<const T> A, TileLines rows, TileLines cols, int power,
                          double allowed_per_element, Backend& backend) {
  TiledBlock block{std::move(rows), std::move(cols), {}};
  Panel<T> panel(A, block.cols, power);
  std::span<const Index> left(block.rows.order);
  for (const Index height : block.rows.sizes) {
    panel.read(left.first(at(height)));
    left = left.subspan(at(height));
    const std::size_t first = block.tiles.size(), count = block.cols.sizes.size();
    block.tiles.resize(first + count);
    std::vector<Range> ranges;
    for (const Index width : block.cols.sizes)
      ranges.push_back({ranges.empty() ? 0 : ranges.back().end(), width});
    const double flops = 20 * product_flops<T>(height, A.cols, 64);
    backend.for_each(static_cast<Index>(count), flops, [&](Index j) {
      const double area = static_cast<double>(height * ranges[at(j)].size);
      block.tiles[first + at(j)] =
          compress_tile<T>(panel.columns(ranges[at(j)]), allowed_per_element * std::sqrt(area));
    });
  }
  return block;
}

/// A block in host memory.
template <Scalar T>
class HostCopy {
 public:
  HostCopy(MatrixView<const T> A, Backend& backend) : view_(A) {
    if (backend.memory_space() == MemorySpace::host || A.empty()) return;
    copy_.resize(at(A.size()));
    for (Index j = 0; j < A.cols; ++j)
      backend.download(A.column(j), copy_.data() + j * A.rows, A.rows * Index{sizeof(T)});
    view_ = MatrixView<const T>(copy_.data(), A.rows, A.cols);
  }
  MatrixView<const T> view() const { return view_; }

 private:
  std::vector<T> copy_;
  MatrixView<const T> view_;
};

}  // namespace

template <Scalar T>
CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>& A, const CompressionOptions& options) {
  const std::shared_ptr<const ProcessGrid>& grid = A.grid();
  agree(grid, "compress", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", A);
    agreement.on("the tolerance", options.tolerance).on("the size of a tile", options.tile);
    require<UsageError>(options.tolerance > 0 && options.tolerance < 1, "compress: the tolerance is ",
                        options.tolerance, "; it must be above 0 and below 1");
    require<UsageError>(options.tile > 0, "compress: tiles cannot have ", options.tile, " rows and columns");
    const Layout needed = matrix_layout(Algorithm::stationary_a, *grid, A.rows(), A.cols());
    require<ShapeError>(A.layout().rows.axis == needed.rows.axis && A.layout().cols.axis == needed.cols.axis,
                        "compress needs its matrix as ", needed.describe(), ", not as ",
                        A.layout().describe());
    require_order(options.row_order, A.rows(), "rows");
    require_order(options.col_order, A.cols(), "columns");
  });
  CompressionReport report{.dense_bytes = A.rows() * A.cols() * Index{sizeof(T)}};
  if (!grid->is_member()) return make_compressed<T>(grid, A.layout(), {}, 0, {});

  const TraceRegion region("compress");
  Communicator& comm = grid->comm();
  report.norm = frobenius_norm(A);
  if (!std::isfinite(report.norm)) {
    const auto found = find_non_finite(A);
    require<UsageError>(!found, "compress: element (", found ? found->row : 0, ", ", found ? found->col : 0,
                        ") of the matrix is ", found ? found->value : 0);
  }
  int power = 0;
  std::frexp(report.norm, &power);
  using Limits = std::numeric_limits<Real<T>>;
  power = std::clamp(power, Limits::min_exponent, Limits::max_exponent - 1);
  const double norm = std::ldexp(report.norm, -power);
  const double elements = static_cast<double>(A.rows()) * static_cast<double>(A.cols());
  std::array<double, 1> error{};  // squared
  std::array<Index, 4> sums{};
  CompressedBlock<T> block;
  attempt(comm, [&] {
    const HostCopy<T> local(A.local(), *grid->backend());
    TiledBlock tiles =
        compress_block<T>(local.view(), lines_of(A.local_row_range(), options.row_order, options.tile),
                          lines_of(A.local_col_range(), options.col_order, options.tile), power,
                          options.tolerance * norm / std::sqrt(std::max(elements, 1.0)), *grid->backend());
    for (const StoredTile& tile : tiles.tiles) {
      error[0] += tile.error_squared;
      sums[1] += 1;
      sums[2] += tile.dense ? 1 : 0;
      sums[3] += tile.bytes() == 0 ? 1 : 0;
    }
    block = CompressedBlock<T>(grid->backend(), std::move(tiles));
    sums[0] = block.bytes();
  });
  comm.all_reduce(error, ReduceOp::sum);
  comm.all_reduce(sums, ReduceOp::sum);
  report.error = report.norm > 0 ? std::sqrt(error[0]) / norm : 0;
  report.bytes = sums[0];
  report.tiles = sums[1];
  report.dense_tiles = sums[2];
  report.empty_tiles = sums[3];
  return make_compressed<T>(grid, A.layout(), std::move(block), power, report);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>&, const CompressionOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
