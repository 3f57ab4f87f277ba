// SPDX-License-Identifier: BSD-3-Clause
#include "local/panel_matrix.hpp"

#include <algorithm>

#include "local/skinny_parts.hpp"

namespace gridlops {

namespace {

/// Panel times X, panel after panel.
template <Scalar T>
class PanelForward {
  using R = Real<T>;

 public:
  PanelForward(const SkinnyKernels<R>& kernels, Index height, MatrixView<const T> X)
      : kernels_(kernels),
        height_(parts<T> * height),
        cols_(X.rows),
        groups_(X.cols),
        coefficients_(cols_ * groups_.columns()),
        sums_(height_ * groups_.columns()) {
    R* to = coefficients_.data();
    for (Index g = 0; g < groups_.count(); ++g)
      for (Index k = 0; k < cols_; ++k)
        for (Index c = groups_.begin(g); c < groups_.begin(g + 1); ++c) *to++ = real_part_of(X, k, c);
  }

  /// Meanwhile fetches the first columns of the next panel.
  void run(const R* panel, const R* next, Index next_cols) {
    std::fill_n(sums_.data(), height_ * groups_.columns(), R(0));
    for (Index g = 0; g < groups_.count(); ++g) {
      const Index before = groups_.begin(g), width = groups_.width(g);
      kernels_.forward[static_cast<std::size_t>(width - 1)](
          panel, height_, height_ / kernels_.tile_rows, cols_, coefficients_.data() + before * cols_,
          sums_.data() + before * height_,
          {next, groups_.share(g, next_cols), groups_.share(g + 1, next_cols)});
    }
  }

  /// Element i of the panel's rows of the product's column j.
  T sum(Index i, Index j) const {
    if constexpr (is_complex<T>) {
      return T(real_sum(2 * i, 2 * j) - real_sum(2 * i + 1, 2 * j + 1),
               real_sum(2 * i + 1, 2 * j) + real_sum(2 * i, 2 * j + 1));
    } else {
      return real_sum(i, j);
    }
  }

 private:
  R real_sum(Index i, Index c) const {
    const Index g = groups_.group_of(c), tile = i / kernels_.tile_rows;
    const R* const sums =
        sums_.data() + groups_.begin(g) * height_ + tile * groups_.width(g) * kernels_.tile_rows;
    return sums[(c - groups_.begin(g)) * kernels_.tile_rows + i % kernels_.tile_rows];
  }

  const SkinnyKernels<R>& kernels_;
  Index height_, cols_;
  Groups<T> groups_;
  Workspace<R> coefficients_, sums_;
};

/// Sums of op(panel) times a block of rows, over the panels.
template <Scalar T>
class PanelAdjoint {
  using R = Real<T>;

 public:
  PanelAdjoint(const SkinnyKernels<R>& kernels, Op op, Index height, Index cols, Index columns)
      : kernels_(kernels),
        op_(op),
        height_(parts<T> * height),
        stride_((height_ + most_lanes - 1) / most_lanes * most_lanes),
        cols_(cols),
        groups_(columns),
        block_(stride_ * groups_.columns()),
        sums_(cols * groups_.columns()) {
    std::fill_n(block_.data(), stride_ * groups_.columns(), R(0));
    std::fill_n(sums_.data(), cols * groups_.columns(), R(0));
  }

  /// Element i of the block's column j.
  void set(Index i, Index j, T y) {
    if constexpr (is_complex<T>) {
      const R sign = op_ == Op::adjoint ? R(1) : R(-1);
      R* const real = block_.data() + 2 * j * stride_ + 2 * i;
      R* const imaginary = real + stride_;
      real[0] = y.real();
      real[1] = sign * y.imag();
      imaginary[0] = y.imag();
      imaginary[1] = -sign * y.real();
    } else {
      block_.data()[j * stride_ + i] = y;
    }
  }

  /// With this many rows of the panel and the block; meanwhile fetches all but the first columns of the next
  /// panel.
  void run(const R* panel, Index rows, const R* next, Index first_col) {
    const Index tiles = cols_ / kernels_.tile_cols, whole = tiles * kernels_.tile_cols;
    const Index fetched = (cols_ - first_col) / kernels_.tile_cols;
    for (Index g = 0; g < groups_.count(); ++g) {
      const Index before = groups_.begin(g), width = groups_.width(g);
      const auto kernel = static_cast<std::size_t>(width - 1);
      const R* const block = block_.data() + before * stride_;
      R* const sums = sums_.data() + before * cols_;
      const Index real_rows = parts<T> * rows;
      const auto part = [&](Index begin, Index count, const R* ahead, Index ahead_end) {
        kernels_.adjoint[kernel](panel + begin * kernels_.tile_cols * height_, height_, count, real_rows,
                                 block, stride_, sums + begin * kernels_.tile_cols * width,
                                 {ahead, 0, ahead_end});
      };
      part(0, fetched, next + first_col * height_, g == 0 ? height_ : 0);
      part(fetched, tiles - fetched, panel, 0);
      if (whole < cols_) {
        kernels_.adjoint_column[kernel](panel + whole * height_, height_, cols_ - whole, real_rows, block,
                                        stride_, sums + whole * width, {panel, 0, 0});
      }
    }
  }

  T sum(Index k, Index j) const {
    if constexpr (is_complex<T>) {
      return T(real_sum(k, 2 * j), real_sum(k, 2 * j + 1));
    } else {
      return real_sum(k, j);
    }
  }

 private:
  static constexpr Index most_lanes = 16;
  R real_sum(Index k, Index c) const {
    const Index g = groups_.group_of(c);
    return sums_.data()[groups_.begin(g) * cols_ + k * groups_.width(g) + c - groups_.begin(g)];
  }

  const SkinnyKernels<R>& kernels_;
  Op op_;
  Index height_, stride_, cols_;
  Groups<T> groups_;
  Workspace<R> block_, sums_;
};

}  // namespace

template <Scalar T>
PanelMatrix<T>::PanelMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                            InstructionSet set)
    : kernels_(&skinny_kernels<Real<T>>(set)),
      rows_(A.rows),
      cols_(A.cols),
      // Two of the smaller tiles make one line of the cache or more of every column.
      height_(kernels_->tile_rows * (set == InstructionSet::avx512 ? 1 : 2) / parts<T>),
      storage_(backend, panels() * height_ * cols_) {
  for (Index p = 0; p < panels(); ++p) {
    const Range rows = panel_rows(p);
    T* to = storage_.data() + p * height_ * cols_;
    for (Index j = 0; j < cols_; ++j, to += height_)
      std::fill(std::copy_n(A.column(j) + rows.begin, rows.size, to), to + height_, T(0));
  }
}

template <Scalar T>
const Real<T>* PanelMatrix<T>::panel(Index index) const {
  return reinterpret_cast<const Real<T>*>(storage_.data() + index * height_ * cols_);
}

template <Scalar T>
void PanelMatrix<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  if (Y.empty()) return;
  if (op == Op::none) {
    PanelForward<T> forward(*kernels_, height_, X);
    for (Index p = 0; p < panels(); ++p) {
      forward.run(panel(p), next_panel(p), cols_);
      const Range rows = panel_rows(p);
      for (Index j = 0; j < Y.cols; ++j)
        for (Index i = 0; i < rows.size; ++i)
          add_scaled(alpha, forward.sum(i, j), beta, Y(rows.begin + i, j));
    }
    return;
  }
  PanelAdjoint<T> adjoint(*kernels_, op, height_, cols_, X.cols);
  for (Index p = 0; p < panels(); ++p) {
    const Range rows = panel_rows(p);
    for (Index j = 0; j < X.cols; ++j)
      for (Index i = 0; i < rows.size; ++i) adjoint.set(i, j, X(rows.begin + i, j));
    adjoint.run(panel(p), rows.size, next_panel(p), 0);
  }
  for (Index j = 0; j < Y.cols; ++j)
    for (Index k = 0; k < Y.rows; ++k) add_scaled(alpha, adjoint.sum(k, j), beta, Y(k, j));
}

template <Scalar T>
void PanelMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                              MatrixView<T> W) const {
  const Index columns = P.cols;
  PanelForward<T> forward(*kernels_, height_, P);
  PanelAdjoint<T> adjoint(*kernels_, Op::adjoint, height_, cols_, 2 * columns);
  for (Index p = 0; p < panels(); ++p) {
    const Range rows = panel_rows(p);
    forward.run(panel(p), next_panel(p), cols_ / 2);
    for (Index j = 0; j < columns; ++j) {
      for (Index i = 0; i < rows.size; ++i) {
        Q(rows.begin + i, j) = forward.sum(i, j);
        adjoint.set(i, columns + j, forward.sum(i, j));
        adjoint.set(i, j, R(rows.begin + i, j));
      }
    }
    adjoint.run(panel(p), rows.size, next_panel(p), cols_ / 2);
  }
  for (Index j = 0; j < W.cols; ++j)
    for (Index k = 0; k < W.rows; ++k) W(k, j) = adjoint.sum(k, j);
}

template class PanelMatrix<float>;
template class PanelMatrix<double>;
template class PanelMatrix<std::complex<float>>;
template class PanelMatrix<std::complex<double>>;

}  // namespace gridlops
