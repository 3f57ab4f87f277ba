// SPDX-License-Identifier: BSD-3-Clause
#include "local/skinny_gemm.hpp"

#include <algorithm>
#include <array>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/skinny_parts.hpp"
#include "local/skinny_strips.hpp"

namespace gridlops {

namespace {

/// How many bytes of a column of A are multiplied together. With some columns of A and the matching rows of X
/// or Y they stay in the second-level cache, and they are enough for memory to deliver at full speed.
constexpr Index block_bytes = 8192;

template <Scalar T>
class ForwardProduct {
  using R = Real<T>;

 public:
  ForwardProduct(T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                 const SkinnyKernels<R>& kernels)
      : alpha_(alpha),
        beta_(beta),
        A_(real_view(A)),
        X_(X),
        Y_(Y),
        kernels_(kernels),
        groups_(X.cols),
        tiles_(std::min(block_tiles(), tiles_in(A_.rows))),
        sums_(tiles_ * kernels.tile_rows * groups_.columns()),
        coefficients_(depth * groups_.columns()) {}

  void run() {
    const Index height = tiles_ * kernels_.tile_rows;
    Index done = 0;
    for (; done + height <= A_.rows; done += height) block(done, tiles_, done);
    const Index rest = (A_.rows - done) / kernels_.tile_rows;
    if (rest > 0) block(done, rest, done);
    done += rest * kernels_.tile_rows;
    // The last tile ends with A; the rows that it shares with the tile before it are computed twice.
    if (done < A_.rows) block(A_.rows - kernels_.tile_rows, 1, done);
  }

 private:
  static constexpr Index depth = 24;  // columns of A between two passes over the sums

  Index block_tiles() const { return block_bytes / static_cast<Index>(sizeof(R)) / kernels_.tile_rows; }
  Index tiles_in(Index rows) const { return std::max<Index>(rows / kernels_.tile_rows, 1); }

  /// Computes the rows of so many tiles from `begin` on. Those before `first_new` are known already.
  void block(Index begin, Index tiles, Index first_new) {
    const Index height = tiles * kernels_.tile_rows;
    std::fill_n(sums_.data(), height * groups_.columns(), R(0));
    for (Index k = 0; k < A_.cols; k += depth) {
      const Index count = std::min(depth, A_.cols - k);
      const R* const panel = A_.column(k) + begin;
      const Index next_count = std::min(depth, A_.cols - k - count);
      const R* const next = panel + count * A_.stride;
      pack(k, count);
      for (Index g = 0; g < groups_.count(); ++g) {
        const Index before = groups_.begin(g), width = groups_.width(g);
        kernels_.forward[at(width - 1)](
            panel, A_.stride, tiles, count, coefficients_.data() + before * count,
            sums_.data() + before * height,
            {next, groups_.share(g, next_count), groups_.share(g + 1, next_count)});
      }
    }
    for (Index g = 0; g < groups_.count(); ++g)
      for (Index tile = 0; tile < tiles; ++tile) finish(g, tile, begin, height, first_new);
  }

  /// Packs rows k, … of X, group by group, with the real and imaginary parts of a row one after the other.
  void pack(Index k, Index count) {
    R* to = coefficients_.data();
    for (Index g = 0; g < groups_.count(); ++g) {
      for (Index l = k; l < k + count; ++l)
        for (Index c = groups_.begin(g); c < groups_.begin(g + 1); ++c) *to++ = real_part_of(X_, l, c);
    }
  }

  /// Writes the columns of Y of a group, in the rows of a tile of the block.
  void finish(Index g, Index tile, Index begin, Index height, Index first_new) {
    constexpr Index step = parts<T>;
    const Index width = groups_.width(g), tile_rows = kernels_.tile_rows;
    const Index row = (begin + tile * tile_rows) / step;
    const R* sums = sums_.data() + groups_.begin(g) * height + tile * width * tile_rows;
    for (Index c = 0; c < width; c += step, sums += step * tile_rows) {
      T* const y = Y_.column((groups_.begin(g) + c) / step) + row;
      for (Index i = std::max<Index>(first_new / step - row, 0); i < tile_rows / step; ++i) {
        if constexpr (is_complex<T>) {
          const R* const with_imaginary = sums + tile_rows;
          const T sum(sums[2 * i] - with_imaginary[2 * i + 1], sums[2 * i + 1] + with_imaginary[2 * i]);
          add_scaled(alpha_, sum, beta_, y[i]);
        } else {
          add_scaled(alpha_, sums[i], beta_, y[i]);
        }
      }
    }
  }

  T alpha_, beta_;
  MatrixView<const R> A_;
  MatrixView<const T> X_;
  MatrixView<T> Y_;
  const SkinnyKernels<R>& kernels_;
  Groups<T> groups_;
  Index tiles_;
  Workspace<R> sums_, coefficients_;
};

template <Scalar T>
class AdjointProduct {
  using R = Real<T>;

 public:
  AdjointProduct(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> Y, T beta, MatrixView<T> X,
                 const SkinnyKernels<R>& kernels)
      : op_(op),
        alpha_(alpha),
        beta_(beta),
        A_(real_view(A)),
        Y_(Y),
        X_(X),
        kernels_(kernels),
        groups_(Y.cols),
        stride_((std::min(block, A_.rows) + most_lanes - 1) / most_lanes * most_lanes),
        packed_(stride_ * groups_.columns()),
        sums_(A_.cols * groups_.columns()) {}

  void run() {
    std::fill_n(sums_.data(), A_.cols * groups_.columns(), R(0));
    for (Index begin = 0; begin < A_.rows; begin += block) {
      const Index rows = std::min(block, A_.rows - begin);
      pack(begin, rows);
      for (Index k = 0; k < A_.cols; k += panel_cols) multiply_panel(begin, rows, k);
    }
    for (Index g = 0; g < groups_.count(); ++g) finish(g);
  }

 private:
  static constexpr Index block = block_bytes / static_cast<Index>(sizeof(R));
  static constexpr Index most_lanes = 16;
  static constexpr Index panel_cols = 16;

  void multiply_panel(Index begin, Index rows, Index k) {
    const Index cols = std::min(panel_cols, A_.cols - k);
    const Index tile_cols = kernels_.tile_cols, tiles = cols / tile_cols, whole = tiles * tile_cols;
    const R* const panel = A_.column(k) + begin;
    const bool is_last = k + 2 * panel_cols > A_.cols;
    for (Index g = 0; g < groups_.count(); ++g) {
      const Index before = groups_.begin(g), width = groups_.width(g);
      const R* const y = packed_.data() + before * stride_;
      R* const sums = sums_.data() + before * A_.cols + k * width;
      const auto kernel = static_cast<std::size_t>(width - 1);
      const typename SkinnyKernels<R>::Ahead ahead{panel + (is_last ? 0 : panel_cols * A_.stride),
                                                   groups_.share(g, rows), groups_.share(g + 1, rows)};
      kernels_.adjoint[kernel](panel, A_.stride, tiles, rows, y, stride_, sums, ahead);
      if (whole < cols) {
        kernels_.adjoint_column[kernel](panel + whole * A_.stride, A_.stride, cols - whole, rows, y, stride_,
                                        sums + whole * width, {panel, 0, 0});
      }
    }
  }

  /// Packs rows begin, … of the real columns that represent Y, with zeros below.
  void pack(Index begin, Index rows) {
    for (Index c = 0; c < groups_.columns(); ++c) {
      R* const to = packed_.data() + c * stride_;
      std::fill(to + rows, to + stride_, R(0));
      copy_real_column(op_, Y_.row_block({begin / parts<T>, rows / parts<T>}), c, to);
    }
  }

  /// Writes the columns of X of a group.
  void finish(Index g) {
    constexpr Index step = parts<T>;
    const Index width = groups_.width(g);
    for (Index c = 0; c < width; c += step) {
      const R* const sums = sums_.data() + groups_.begin(g) * A_.cols + c;
      T* const x = X_.column((groups_.begin(g) + c) / step);
      for (Index k = 0; k < X_.rows; ++k) {
        if constexpr (is_complex<T>) {
          add_scaled(alpha_, T(sums[k * width], sums[k * width + 1]), beta_, x[k]);
        } else {
          add_scaled(alpha_, sums[k * width], beta_, x[k]);
        }
      }
    }
  }

  Op op_;
  T alpha_, beta_;
  MatrixView<const R> A_;
  MatrixView<const T> Y_;
  MatrixView<T> X_;
  const SkinnyKernels<R>& kernels_;
  Groups<T> groups_;
  Index stride_;
  Workspace<R> packed_, sums_;
};

}  // namespace

template <Scalar T>
void skinny_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                 InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx2) return strip_gemm(op, alpha, A, X, beta, Y, strip_kernels_avx2<Real<T>>());
#endif
  const SkinnyKernels<Real<T>>& kernels = skinny_kernels<Real<T>>(set);
  if (op == Op::none) {
    ForwardProduct<T>(alpha, A, X, beta, Y, kernels).run();
  } else {
    AdjointProduct<T>(op, alpha, A, X, beta, Y, kernels).run();
  }
}

// The tables say from which to which number of columns skinny_gemm() was faster than OpenBLAS 0.3.21 with the
// same instruction set, on a Zen 4 core (AVX-512) and a Zen 3 core (AVX2). At most 64 columns were tried. To
// repeat that, run gridlops-bench matmul --rows 4096 --cols 4096 --rhs 1,2,4,8,16,24,32,48,64 --both
// --storage columns on one rank, with GRIDLOPS_KERNELS=avx512 or avx2, and with blas. Processors without AVX2
// use BLAS.
template <Scalar T>
bool skinny_gemm_is_faster(Op op, Index rows, Index cols, Index columns, InstructionSet set) {
  struct Columns {
    Index least, most;
  };
  using Table = std::array<Columns, 4>;  // f32, f64, c64, c128
  constexpr Table forward_512{{{2, 64}, {1, 48}, {1, 32}, {1, 24}}};
  constexpr Table forward_256{{{1, 16}, {1, 24}, {1, 8}, {1, 8}}};
  constexpr Table adjoint_512{{{1, 64}, {1, 64}, {1, 64}, {1, 64}}};
  constexpr Table adjoint_256{{{1, 24}, {1, 24}, {1, 8}, {1, 8}}};
  const bool is_wide = set == InstructionSet::avx512;
  const Table& table =
      op == Op::none ? (is_wide ? forward_512 : forward_256) : (is_wide ? adjoint_512 : adjoint_256);
  const Columns range = table[static_cast<std::size_t>(scalar_type_of<T>)];
  constexpr Index least_bytes = 32 << 10;
  return set != InstructionSet::baseline && range.least <= columns && columns <= range.most &&
         skinny_gemm_takes<T>(op, rows, cols, columns) && parts<T> * rows >= skinny_least_rows &&
         rows * cols * static_cast<Index>(sizeof(T)) >= least_bytes;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                \
  template void skinny_gemm(Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>, \
                            InstructionSet);                                                   \
  template bool skinny_gemm_is_faster<T>(Op, Index, Index, Index, InstructionSet);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
