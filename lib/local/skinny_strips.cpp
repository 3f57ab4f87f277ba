// SPDX-License-Identifier: BSD-3-Clause
#include "local/skinny_strips.hpp"

#include <algorithm>

#include "local/skinny_parts.hpp"

namespace gridlops {

namespace {

/// How a product is cut. A strip is tile_cols columns of A in a block of rows. It is multiplied in pieces,
/// each by all groups of columns of X while it is in the first-level cache.
template <Scalar T>
class Cuts {
  using R = Real<T>;
  using Kernels = StripKernels<R>;

 public:
  Cuts(Index rows, Index columns) : columns_(parts<T> * columns) {
    // The registers do not hold four columns, but that is still faster than two groups that both read A.
    const Index most = columns_ <= Kernels::max_width ? Kernels::max_width : 3;
    groups_ = (columns_ + most - 1) / most;
    // Long strips read memory faster, but the block of all columns of X or Y must stay in cache.
    constexpr Index block_bytes = 32 << 10;
    const Index pieces = std::clamp<Index>(block_bytes / (piece_bytes * columns_), 1, 4);
    block_ = std::min(rows, pieces * piece);
    stride_ = (block_ + most_lanes - 1) / most_lanes * most_lanes + most_lanes;
  }

  /// The rows of a piece. Adjoint products are summed piece by piece, so this must be constant.
  static constexpr Index piece_bytes = 4096, piece = piece_bytes / static_cast<Index>(sizeof(R));

  Index columns() const { return columns_; }
  Index groups() const { return groups_; }
  Index begin(Index group) const { return group * columns_ / groups_; }
  std::size_t kernel(Index group) const { return static_cast<std::size_t>(width(group) - 1); }
  Index width(Index group) const { return begin(group + 1) - begin(group); }
  /// Which of the next strip's columns are prefetched with a group.
  Index fetched_before(Index group) const { return group * Kernels::tile_cols / groups_; }
  Index block() const { return block_; }
  /// The distance of packed columns of a block. It is no power of two, so that they do not fall on the same
  /// sets of a cache.
  Index stride() const { return stride_; }

 private:
  static constexpr Index most_lanes = 16;
  Index columns_, groups_, block_, stride_;
};

/// Calls work(first column, number of columns, rows of A, next) for all pieces of a block's strips, in the
/// order of memory. `next` is the same piece of the next strip, or null.
template <class R, class Work>
void for_each_piece(MatrixView<const R> A, Index piece, Work&& work) {
  constexpr Index width = StripKernels<R>::tile_cols;
  for (Index k = 0; k < A.cols; k += width) {
    for (Index i = 0; i < A.rows; i += piece) {
      const R* const next = k + 2 * width <= A.cols ? A.column(k + width) + i : nullptr;
      work(k, std::min(width, A.cols - k), Range{i, std::min(piece, A.rows - i)}, next);
    }
  }
}

template <Scalar T>
class ForwardStrips {
  using R = Real<T>;
  using Kernels = StripKernels<R>;

 public:
  ForwardStrips(MatrixView<const R> A, MatrixView<const T> X, const Kernels& kernels)
      : A_(A),
        kernels_(kernels),
        cuts_(A.rows, X.cols),
        coefficients_(A.cols * cuts_.columns()),
        sums_(cuts_.stride() * cuts_.columns()) {
    pack(X);
  }

  void run(T alpha, T beta, MatrixView<T> Y) {
    for (Index begin = 0; begin < A_.rows; begin += cuts_.block()) {
      const Index rows = std::min(cuts_.block(), A_.rows - begin);
      multiply(A_.row_block({begin, rows}));
      for (Index j = 0; j < Y.cols; ++j)
        for (Index i = 0; i < rows / parts<T>; ++i)
          add_scaled(alpha, sum(i, j), beta, Y(begin / parts<T> + i, j));
    }
  }

 private:
  /// Packs X strip by strip, then group by group, then row by row.
  void pack(MatrixView<const T> X) {
    R* to = coefficients_.data();
    for (Index k = 0; k < X.rows; k += Kernels::tile_cols) {
      const Index end = std::min<Index>(k + Kernels::tile_cols, X.rows);
      for (Index g = 0; g < cuts_.groups(); ++g)
        for (Index l = k; l < end; ++l)
          for (Index c = cuts_.begin(g); c < cuts_.begin(g + 1); ++c) *to++ = real_part_of(X, l, c);
    }
  }

  void multiply(MatrixView<const R> A) {
    std::fill_n(sums_.data(), cuts_.stride() * cuts_.columns(), R(0));
    for_each_piece(A, cuts_.piece, [&](Index k, Index cols, Range rows, const R* next) {
      const R* const a = A.column(k) + rows.begin;
      for (Index g = 0; g < cuts_.groups(); ++g) {
        const Index before = cuts_.fetched_before(g), count = cuts_.fetched_before(g + 1) - before;
        const R* const b = coefficients_.data() + k * cuts_.columns() + cuts_.begin(g) * cols;
        R* const c = sums_.data() + cuts_.begin(g) * cuts_.stride() + rows.begin;
        if (cols == Kernels::tile_cols) {
          const typename Kernels::Ahead ahead{next != nullptr ? next + before * A.stride : a,
                                              next != nullptr ? count : 0};
          kernels_.forward[cuts_.kernel(g)](a, A.stride, rows.size, b, c, cuts_.stride(), ahead);
        } else {
          for (Index l = 0; l < cols; ++l)
            kernels_.forward_column[cuts_.kernel(g)](a + l * A.stride, A.stride, rows.size,
                                                     b + l * cuts_.width(g), c, cuts_.stride(), {a, 0});
        }
      }
    });
  }

  /// Element i of the block's rows of the product's column j.
  T sum(Index i, Index j) const {
    const R* const sums = sums_.data() + parts<T> * (j * cuts_.stride() + i);
    if constexpr (is_complex<T>) {
      const R* const with_imaginary = sums + cuts_.stride();
      return T(sums[0] - with_imaginary[1], sums[1] + with_imaginary[0]);
    } else {
      return sums[0];
    }
  }

  MatrixView<const R> A_;
  const Kernels& kernels_;
  Cuts<T> cuts_;
  Workspace<R> coefficients_, sums_;
};

template <Scalar T>
class AdjointStrips {
  using R = Real<T>;
  using Kernels = StripKernels<R>;

 public:
  AdjointStrips(Op op, MatrixView<const R> A, MatrixView<const T> Y, const Kernels& kernels)
      : op_(op),
        A_(A),
        Y_(Y),
        kernels_(kernels),
        cuts_(A.rows, Y.cols),
        packed_(cuts_.stride() * cuts_.columns()),
        sums_(A.cols * cuts_.columns()) {}

  void run(T alpha, T beta, MatrixView<T> X) {
    std::fill_n(sums_.data(), A_.cols * cuts_.columns(), R(0));
    for (Index begin = 0; begin < A_.rows; begin += cuts_.block()) {
      const Index rows = std::min(cuts_.block(), A_.rows - begin);
      for (Index c = 0; c < cuts_.columns(); ++c) {
        R* const to = packed_.data() + c * cuts_.stride();
        copy_real_column(op_, Y_.row_block({begin / parts<T>, rows / parts<T>}), c, to);
        std::fill(to + rows, to + cuts_.stride(), R(0));
      }
      multiply(A_.row_block({begin, rows}));
    }
    for (Index j = 0; j < X.cols; ++j)
      for (Index k = 0; k < X.rows; ++k) add_scaled(alpha, sum(k, j), beta, X(k, j));
  }

 private:
  void multiply(MatrixView<const R> A) {
    for_each_piece(A, cuts_.piece, [&](Index k, Index cols, Range rows, const R* next) {
      const R* const a = A.column(k) + rows.begin;
      for (Index g = 0; g < cuts_.groups(); ++g) {
        const Index before = cuts_.fetched_before(g), count = cuts_.fetched_before(g + 1) - before;
        const R* const y = packed_.data() + cuts_.begin(g) * cuts_.stride() + rows.begin;
        R* const d = sums_.data() + cuts_.begin(g) * A.cols + k;
        if (cols == Kernels::tile_cols) {
          const typename Kernels::Ahead ahead{next != nullptr ? next + before * A.stride : a,
                                              next != nullptr ? count : 0};
          kernels_.adjoint[cuts_.kernel(g)](a, A.stride, rows.size, y, cuts_.stride(), d, A.cols, ahead);
        } else {
          for (Index l = 0; l < cols; ++l)
            kernels_.adjoint_column[cuts_.kernel(g)](a + l * A.stride, A.stride, rows.size, y, cuts_.stride(),
                                                     d + l, A.cols, {a, 0});
        }
      }
    });
  }

  T sum(Index k, Index j) const {
    const R* const sums = sums_.data() + parts<T> * j * A_.cols + k;
    if constexpr (is_complex<T>) {
      return T(sums[0], sums[A_.cols]);
    } else {
      return sums[0];
    }
  }

  Op op_;
  MatrixView<const R> A_;
  MatrixView<const T> Y_;
  const Kernels& kernels_;
  Cuts<T> cuts_;
  Workspace<R> packed_, sums_;
};

}  // namespace

template <Scalar T>
void strip_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const StripKernels<Real<T>>& kernels) {
  if (op == Op::none) {
    ForwardStrips<T>(real_view(A), X, kernels).run(alpha, beta, Y);
  } else {
    AdjointStrips<T>(op, real_view(A), X, kernels).run(alpha, beta, Y);
  }
}

template void strip_gemm(Op, float, MatrixView<const float>, MatrixView<const float>, float,
                         MatrixView<float>, const StripKernels<float>&);
template void strip_gemm(Op, double, MatrixView<const double>, MatrixView<const double>, double,
                         MatrixView<double>, const StripKernels<double>&);
template void strip_gemm(Op, std::complex<float>, MatrixView<const std::complex<float>>,
                         MatrixView<const std::complex<float>>, std::complex<float>,
                         MatrixView<std::complex<float>>, const StripKernels<float>&);
template void strip_gemm(Op, std::complex<double>, MatrixView<const std::complex<double>>,
                         MatrixView<const std::complex<double>>, std::complex<double>,
                         MatrixView<std::complex<double>>, const StripKernels<double>&);

}  // namespace gridlops
