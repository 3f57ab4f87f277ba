// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/stored_tile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/random.hpp"
#include "local/blas/cblas.hpp"
#include "local/blas/lapack.hpp"

namespace gridlops {

namespace {

/// A small column-major matrix.
template <class S>
struct Block {
  Block(Index rows_, Index cols_) : rows(rows_), cols(cols_), elements(at(rows_ * cols_)) {}
  MatrixView<S> view() { return {elements.data(), rows, cols}; }
  MatrixView<const S> view() const { return {elements.data(), rows, cols}; }

  Index rows, cols;
  std::vector<S> elements;
};

/// C ← α op_a(A) op_b(B) + β C.
template <class S>
void gemm(Op op_a, Op op_b, S alpha, MatrixView<const S> A, MatrixView<const S> B, S beta, MatrixView<S> C) {
  const auto size = [](Index n) { return static_cast<cblas::Int>(n); };
  if (C.empty()) return;
  const Index inner = op_a == Op::none ? A.cols : A.rows;
  if (inner == 0) return;
  cblas::gemm(op_a, op_b, size(C.rows), size(C.cols), size(inner), alpha, A.data, size(A.stride), B.data,
              size(B.stride), beta, C.data, size(C.stride));
}

/// In several sums, so that the processor need not wait for each addition.
template <class S>
double norm_squared(MatrixView<const S> A) {
  constexpr Index lanes = 8, parts = NarrowMatrix<S>::parts;
  std::array<double, lanes> sums{};
  for (Index j = 0; j < A.cols; ++j) {
    const auto* const x = reinterpret_cast<const double*>(A.column(j));
    const Index count = parts * A.rows, whole = count / lanes * lanes;
    for (Index i = 0; i < whole; i += lanes)
      for (Index l = 0; l < lanes; ++l) sums[at(l)] += x[i + l] * x[i + l];
    for (Index i = whole; i < count; ++i) sums[at(i - whole)] += x[i] * x[i];
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// A ≈ Q Bᴴ for an orthonormal Q; the rest A − Q Bᴴ is orthogonal to Q.
template <class S>
struct RangeBasis {
  Block<S> Q, B;
  Index rank = 0;
  double rest_squared = 0;
};

/// Adds vectors until the rest is at most `small`, or there are `most`. all = ‖A‖_F². The rest itself is
/// multiplied, and its norm computed: where A's range is exhausted, new vectors are noise, and ‖A‖² − ‖B‖²
/// would count once more what older ones hold.
template <class S>
RangeBasis<S> find_range(MatrixView<const S> A, double all, double small, Index most) {
  constexpr Index together = 16;
  RangeBasis<S> range{Block<S>(A.rows, most), Block<S>(A.cols, most), 0, all};
  Block<S> rest(A.rows, A.cols), random(A.cols, together), projected(most, together);
  for (Index j = 0; j < A.cols; ++j) std::copy_n(A.column(j), A.rows, rest.view().column(j));
  const MatrixView<const S> R = std::as_const(rest).view();
  while (range.rest_squared > small && range.rank < most) {
    const Index count = std::min(together, most - range.rank);
    const Range before{0, range.rank}, added{range.rank, count};
    const MatrixView<S> Omega = random.view().col_block({0, count});
    for (Index j = 0; j < count; ++j)
      for (Index i = 0; i < A.cols; ++i) Omega(i, j) = counter_random<S>(1, i, range.rank + j);
    const MatrixView<S> all_Q = range.Q.view(), Q = all_Q.col_block(added),
                        B = range.B.view().col_block(added);
    gemm<S>(Op::none, Op::none, S(1), R, Omega, S(0), Q);
    const MatrixView<S> P = projected.view().block(before, {0, count});
    gemm<S>(Op::adjoint, Op::none, S(1), all_Q.col_block(before), Q, S(0), P);
    gemm<S>(Op::none, Op::none, S(-1), all_Q.col_block(before), P, S(1), Q);
    lapack::orthonormalise(Q);
    gemm<S>(Op::adjoint, Op::none, S(1), R, Q, S(0), B);
    gemm<S>(Op::none, Op::adjoint, S(-1), Q, B, S(1), rest.view());
    range.rank += count;
    range.rest_squared = norm_squared(R);
  }
  return range;
}

/// The square of a rounding error on average, of a number of 1 whose logarithm may be anything.
double rounding_squared(Precision precision) { return 0.18 * std::pow(roundoff(precision), 2); }

/// The ways to store a singular vector pair, cheapest first: not at all, and in each precision.
struct Way {
  Index bytes;   // of a real number
  double error;  // squared, for a singular value of 1
};
template <Scalar T>
std::vector<Way> ways_to_store() {
  std::vector<Way> ways{{0, 1.0}};
  for (int p = 0; p <= static_cast<int>(own_precision<T>); ++p) {
    const auto precision = static_cast<Precision>(p);
    ways.push_back({bytes_of(precision), 2 * rounding_squared(precision)});
  }
  return ways;
}

/// How many of the singular values σ₁ ≥ σ₂ ≥ … each way stores, for the price of a byte as an error.
std::vector<Index> choose_ways(const std::vector<double>& sigma, const std::vector<Way>& ways, double price,
                               double& error_squared) {
  std::vector<Index> counts(ways.size());
  error_squared = 0;
  for (const double s : sigma) {
    std::size_t best = 0;
    const auto cost = [&](std::size_t w) {
      return s * s * ways[w].error + price * static_cast<double>(ways[w].bytes);
    };
    for (std::size_t w = 1; w < ways.size(); ++w)
      if (cost(w) < cost(best)) best = w;
    ++counts[best];
    error_squared += s * s * ways[best].error;
  }
  return counts;
}

/// The highest price with at most this error, by bisection. Without one: all in the highest precision.
std::vector<Index> choose_ways(const std::vector<double>& sigma, const std::vector<Way>& ways,
                               double allowed_squared) {
  double error_squared = 0;
  std::vector<Index> chosen = choose_ways(sigma, ways, 0, error_squared);
  if (sigma.empty() || error_squared > allowed_squared) return chosen;
  double low = 0, high = sigma.front() * sigma.front();
  for (int halving = 0; halving < 100; ++halving) {
    const double price = low > 0 ? std::sqrt(low * high) : high * 0x1p-60;
    const std::vector<Index> counts = choose_ways(sigma, ways, price, error_squared);
    if (error_squared <= allowed_squared) {
      chosen = counts;
      low = price;
    } else {
      high = price;
    }
    if (low == 0 && high < 0x1p-200) break;
  }
  return chosen;
}

/// ‖A − Ã‖_F².
template <class S>
double error_squared(MatrixView<const S> A, const StoredTile& tile) {
  Block<S> rest(A.rows, A.cols);
  for (Index j = 0; j < A.cols; ++j) std::copy_n(A.column(j), A.rows, rest.view().column(j));
  for (std::size_t p = 0; p < precisions; ++p) {
    const auto precision = static_cast<Precision>(p);
    const auto wide = [&](const std::vector<std::byte>& bytes, Index rows, Index cols) {
      Block<S> block(rows, cols);
      widen<S>({bytes.data(), rows, cols, precision}, block.elements.data());
      return block;
    };
    if (tile.dense == precision) {
      const Block<S> stored = wide(tile.U[p], A.rows, A.cols);
      for (std::size_t k = 0; k < rest.elements.size(); ++k) rest.elements[k] -= stored.elements[k];
    } else if (tile.ranks[p] > 0) {
      const Block<S> U = wide(tile.U[p], A.rows, tile.ranks[p]), V = wide(tile.V[p], A.cols, tile.ranks[p]);
      gemm<S>(Op::none, Op::adjoint, S(-1), U.view(), V.view(), S(1), rest.view());
    }
  }
  return norm_squared(std::as_const(rest).view());
}

template <class S>
std::vector<std::byte> narrowed(MatrixView<const S> A, Precision precision) {
  const NarrowMatrix<S> shape{nullptr, A.rows, A.cols, precision};
  std::vector<std::byte> bytes(at(shape.bytes()));
  narrow<S>(A, precision, bytes.data());
  return bytes;
}

template <class S>
StoredTile dense_tile_in(MatrixView<const S> A, Precision precision) {
  StoredTile tile{.rows = A.rows, .cols = A.cols, .dense = precision};
  tile.U[static_cast<std::size_t>(precision)] = narrowed(A, precision);
  tile.error_squared = error_squared(A, tile);
  return tile;
}

/// The lowest precision in which a tile, of this squared norm, is expected to keep the error.
template <Scalar T>
Precision dense_precision(double norm_squared, double allowed_squared) {
  int p = 0;
  while (p < static_cast<int>(own_precision<T>) &&
         norm_squared * rounding_squared(static_cast<Precision>(p)) > allowed_squared)
    ++p;
  return static_cast<Precision>(p);
}

/// The tile in this precision, or in the next ones that keeps the error; its own precision has none.
template <Scalar T>
StoredTile dense_tile(MatrixView<const Accumulator<T>> A, Precision precision, double allowed_squared) {
  StoredTile tile;
  for (int p = static_cast<int>(precision); p <= static_cast<int>(own_precision<T>); ++p) {
    tile = dense_tile_in<Accumulator<T>>(A, static_cast<Precision>(p));
    if (tile.error_squared <= allowed_squared) break;
  }
  return tile;
}

/// The tile by its singular vectors; counts: of the vectors that each way stores.
template <class S>
StoredTile tile_of(MatrixView<const S> A, const Block<S>& U, const Block<S>& V,
                   const std::vector<Index>& counts) {
  StoredTile tile{.rows = A.rows, .cols = A.cols};
  Index begin = 0;
  for (std::size_t way = counts.size() - 1; way > 0; --way) {  // the largest singular values first
    const Range vectors{begin, counts[way]};
    const std::size_t p = way - 1;
    tile.ranks[p] = vectors.size;
    tile.U[p] = narrowed(U.view().col_block(vectors), static_cast<Precision>(p));
    tile.V[p] = narrowed(V.view().col_block(vectors), static_cast<Precision>(p));
    begin = vectors.end();
  }
  tile.error_squared = error_squared(A, tile);
  return tile;
}

/// The tile by its singular vectors; nothing if it takes as many bytes as in columns of this precision, or
/// does not keep the error.
template <Scalar T>
std::optional<StoredTile> low_rank_tile(MatrixView<const Accumulator<T>> A, double all, Precision precision,
                                        double allowed_squared) {
  using S = Accumulator<T>;
  const Index dense_bytes = NarrowMatrix<T>{nullptr, A.rows, A.cols, precision}.bytes();
  // With more vectors, even of the lowest precision, the tile as it is takes fewer bytes.
  const Index of_vectors = NarrowMatrix<T>{nullptr, A.rows + A.cols, 1, Precision::bfloat16}.bytes();
  const Index most = std::min({A.rows, A.cols, dense_bytes / of_vectors});
  constexpr double share_of_rest = 0.05;
  const RangeBasis<S> range = find_range<S>(A, all, share_of_rest * allowed_squared, most);
  if (range.rank == 0 || range.rest_squared > share_of_rest * allowed_squared) return {};

  Block<S> B(A.cols, range.rank), V(A.cols, range.rank), Zh(range.rank, range.rank), U(A.rows, range.rank);
  std::copy_n(range.B.elements.data(), B.elements.size(), B.elements.data());
  std::vector<double> sigma(at(range.rank));
  if (!lapack::singular_values(B.view(), sigma.data(), V.elements.data(), Zh.elements.data())) return {};
  gemm<S>(Op::none, Op::adjoint, S(1), range.Q.view().col_block({0, range.rank}), Zh.view(), S(0), U.view());
  for (Index k = 0; k < range.rank; ++k)
    for (Index i = 0; i < A.rows; ++i) U.view()(i, k) *= sigma[at(k)];

  const std::vector<Way> ways = ways_to_store<T>();
  double left = allowed_squared - range.rest_squared;
  for (int attempts = 0; attempts < 4; ++attempts, left /= 2) {  // rounding may exceed its average
    StoredTile tile = tile_of<S>(A, U, V, choose_ways(sigma, ways, left));
    if (tile.bytes() >= dense_bytes) break;
    if (tile.error_squared <= allowed_squared) return tile;
  }
  return {};
}

}  // namespace

Index StoredTile::bytes() const {
  std::size_t sum = 0;
  for (std::size_t p = 0; p < precisions; ++p) sum += U[p].size() + V[p].size();
  return static_cast<Index>(sum);
}

template <Scalar T>
StoredTile compress_tile(MatrixView<const Accumulator<T>> A, double allowed) {
  const double all = norm_squared(A), allowed_squared = allowed * allowed;
  if (all <= allowed_squared) return {.rows = A.rows, .cols = A.cols, .error_squared = all};
  const Precision precision = dense_precision<T>(all, allowed_squared);
  if (std::optional<StoredTile> tile = low_rank_tile<T>(A, all, precision, allowed_squared))
    return *std::move(tile);
  return dense_tile<T>(A, precision, allowed_squared);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template StoredTile compress_tile<T>(MatrixView<const Accumulator<T>>, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
