// SPDX-License-Identifier: BSD-3-Clause
#include "local/panel_matrix.hpp"

#include <algorithm>

#include "local/skinny_parts.hpp"

namespace gridlops {

namespace {

/// Real columns in groups of nearly equal width, at most `most`.
class WidthGroups {
 public:
  WidthGroups(Index columns, int most) : columns_(columns), count_((columns + most - 1) / most) {}
  Index count() const { return count_; }
  Index begin(Index group) const { return group * columns_ / count_; }
  Index width(Index group) const { return begin(group + 1) - begin(group); }
  Index columns() const { return columns_; }
  Index group_of(Index column) const {
    Index group = 0;
    while (begin(group + 1) <= column) ++group;
    return group;
  }

 private:
  Index columns_, count_;
};

template <class Table>
auto* kernel_for(const Table& table, Index width) {
  return table[static_cast<std::size_t>(width - 1)];
}

/// Panel times X, panel after panel.
template <Scalar T>
class PanelForward {
  using R = Real<T>;
  using Kernels = PanelKernels<R>;

 public:
  PanelForward(const Kernels& kernels, MatrixView<const T> X)
      : kernels_(kernels),
        tiles_((X.rows + kernels.tile_cols - 1) / kernels.tile_cols),
        groups_(parts<T> * X.cols, Kernels::widest_forward),
        coefficients_(tiles_ * kernels.tile_cols * parts<T> * X.cols),
        sums_(Kernels::rows * parts<T> * X.cols) {
    R* to = coefficients_.data();
    for (Index g = 0; g < groups_.count(); ++g)
      for (Index t = 0; t < tiles_; ++t)
        for (Index c = groups_.begin(g); c < groups_.begin(g + 1); ++c)
          for (Index k = t * kernels.tile_cols; k < (t + 1) * kernels.tile_cols; ++k)
            *to++ = k < X.rows ? real_part_of(X, k, c) : R(0);
  }

  /// Meanwhile fetches the first tiles of the next panel.
  void run(const R* panel, const R* next, Index next_tiles) {
    for (Index g = 0; g < groups_.count(); ++g) {
      const Index before = groups_.begin(g), width = groups_.width(g);
      kernel_for(kernels_.forward, width)(
          panel, tiles_, coefficients_.data() + before * tiles_ * kernels_.tile_cols,
          sums_.data() + before * Kernels::rows, {next, 0, g == 0 ? next_tiles : 0});
    }
  }

  /// Element i of the panel's rows of the product's column j.
  T sum(Index i, Index j) const {
    const auto real_sum = [this](Index row, Index c) { return sums_.data()[c * Kernels::rows + row]; };
    if constexpr (is_complex<T>) {
      return T(real_sum(2 * i, 2 * j) - real_sum(2 * i + 1, 2 * j + 1),
               real_sum(2 * i + 1, 2 * j) + real_sum(2 * i, 2 * j + 1));
    } else {
      return real_sum(i, j);
    }
  }

 private:

  const Kernels& kernels_;
  Index tiles_;
  WidthGroups groups_;
  Workspace<R> coefficients_, sums_;
};

/// Sums of op(panel) times a block of rows, over the panels.
template <Scalar T>
class PanelAdjoint {
  using R = Real<T>;
  using Kernels = PanelKernels<R>;

 public:
  PanelAdjoint(const Kernels& kernels, Op op, Index cols, Index columns)
      : kernels_(kernels),
        op_(op),
        tiles_((cols + kernels.tile_cols - 1) / kernels.tile_cols),
        groups_(parts<T> * columns, Kernels::widest_adjoint),
        block_(Kernels::rows * parts<T> * columns),
        sums_(tiles_ * kernels.tile_cols * parts<T> * columns) {
    std::fill_n(sums_.data(), tiles_ * kernels.tile_cols * parts<T> * columns, R(0));
  }

  /// The block's rows below the last one of the matrix.
  void clear_block() { std::fill_n(block_.data(), Kernels::rows * groups_.columns(), R(0)); }

  /// Element i of the block's column j.
  void set(Index i, Index j, T y) {
    if constexpr (is_complex<T>) {
      const R sign = op_ == Op::adjoint ? R(1) : R(-1);
      place(2 * i, 2 * j) = y.real();
      place(2 * i + 1, 2 * j) = sign * y.imag();
      place(2 * i, 2 * j + 1) = y.imag();
      place(2 * i + 1, 2 * j + 1) = -sign * y.real();
    } else {
      place(i, j) = y;
    }
  }

  /// Meanwhile fetches the next panel.
  void run(const R* panel, const R* next) {
    for (Index g = 0; g < groups_.count(); ++g) {
      const Index before = groups_.begin(g), width = groups_.width(g);
      kernel_for(kernels_.adjoint, width)(panel, tiles_, block_.data() + before * Kernels::rows,
                                          sums_.data() + before * tiles_ * kernels_.tile_cols,
                                          {next, 0, g == 0 ? tiles_ : 0});
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
  R& place(Index i, Index c) {
    const Index g = groups_.group_of(c), before = groups_.begin(g);
    return block_.data()[before * Kernels::rows + i * groups_.width(g) + c - before];
  }
  R real_sum(Index k, Index c) const {
    const Index g = groups_.group_of(c), before = groups_.begin(g), tile = k / kernels_.tile_cols;
    return sums_.data()[(before * tiles_ + tile * groups_.width(g) + c - before) * kernels_.tile_cols +
                        k % kernels_.tile_cols];
  }

  const Kernels& kernels_;
  Op op_;
  Index tiles_;
  WidthGroups groups_;
  Workspace<R> block_, sums_;
};

}  // namespace

template <Scalar T>
PanelMatrix<T>::PanelMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                            InstructionSet set)
    : kernels_(&panel_kernels<Real<T>>(set)),
      rows_(A.rows),
      cols_(A.cols),
      storage_(backend, panels() * panel_size()) {
  // Some panels at a time, so that whole lines of the columns are read.
  constexpr Index at_once = 8;
  const Index tile_cols = kernels_->tile_cols, tile = PanelKernels<Real<T>>::rows * tile_cols;
  const MatrixView<const Real<T>> real = real_view(A);
  constexpr Index real_rows = PanelKernels<Real<T>>::rows;
  for (Index first = 0; first < panels(); first += at_once) {
    const Index begin = first * real_rows, end = std::min(first + at_once, panels()) * real_rows;
    for (Index k = 0; k < tiles() * tile_cols; ++k) {
      Real<T>* const to = storage_.data() + k / tile_cols * tile + k % tile_cols;
      for (Index i = begin; i < end; ++i)
        to[i / real_rows * panel_size() + i % real_rows * tile_cols] =
            i < real.rows && k < cols_ ? real(i, k) : Real<T>(0);
    }
  }
}

template <Scalar T>
void PanelMatrix<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  if (Y.empty()) return;
  if (op == Op::none) {
    PanelForward<T> forward(*kernels_, X);
    for (Index p = 0; p < panels(); ++p) {
      forward.run(panel(p), next_panel(p), tiles());
      const Range rows = panel_rows(p);
      for (Index j = 0; j < Y.cols; ++j)
        for (Index i = 0; i < rows.size; ++i)
          add_scaled(alpha, forward.sum(i, j), beta, Y(rows.begin + i, j));
    }
    return;
  }
  PanelAdjoint<T> adjoint(*kernels_, op, cols_, X.cols);
  for (Index p = 0; p < panels(); ++p) {
    const Range rows = panel_rows(p);
    if (rows.size < height) adjoint.clear_block();
    for (Index j = 0; j < X.cols; ++j)
      for (Index i = 0; i < rows.size; ++i) adjoint.set(i, j, X(rows.begin + i, j));
    adjoint.run(panel(p), next_panel(p));
  }
  for (Index j = 0; j < Y.cols; ++j)
    for (Index k = 0; k < Y.rows; ++k) add_scaled(alpha, adjoint.sum(k, j), beta, Y(k, j));
}

template <Scalar T>
void PanelMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                              const Completion& completed) const {
  const Index columns = P.cols;
  PanelForward<T> forward(*kernels_, P);
  PanelAdjoint<T> adjoint(*kernels_, Op::adjoint, cols_, 2 * columns);
  Index done = 0;  // panels that went through the adjoint
  const auto follow = [&](Index computed, const Real<T>* next) {
    const Index complete = completed ? completed(computed) : computed;
    for (; done < panels() && panel_rows(done).end() <= complete; ++done) {
      const Range rows = panel_rows(done);
      if (rows.size < height) adjoint.clear_block();
      for (Index j = 0; j < columns; ++j) {
        for (Index i = 0; i < rows.size; ++i) {
          adjoint.set(i, j, R(rows.begin + i, j));
          adjoint.set(i, columns + j, Q(rows.begin + i, j));
        }
      }
      adjoint.run(panel(done), next);
    }
  };
  for (Index p = 0; p < panels(); ++p) {
    const Range rows = panel_rows(p);
    // The adjoint, which computes more, fetches what follows.
    forward.run(panel(p), next_panel(p), 0);
    for (Index j = 0; j < columns; ++j)
      for (Index i = 0; i < rows.size; ++i) Q(rows.begin + i, j) = forward.sum(i, j);
    follow(rows.end(), next_panel(p));
  }
  while (done < panels()) follow(rows_, panel(panels() - 1));
  for (Index j = 0; j < W.cols; ++j)
    for (Index k = 0; k < W.rows; ++k) W(k, j) = adjoint.sum(k, j);
}

template class PanelMatrix<float>;
template class PanelMatrix<double>;
template class PanelMatrix<std::complex<float>>;
template class PanelMatrix<std::complex<double>>;

}  // namespace gridlops
