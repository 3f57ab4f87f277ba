// SPDX-License-Identifier: BSD-3-Clause
#include "solve/block_basis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

namespace {

constexpr int most_passes = 4;

template <Scalar T>
constexpr double epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

/// Below 100 ε (of a squared length of 1) a Gram matrix knows little but its own rounding.
template <Scalar T>
constexpr double gram_floor = 100 * epsilon<T>;

template <Scalar T>
T rounded(Accumulator<T> value) {
  if constexpr (is_complex<T>) {
    return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

template <Scalar T>
MatrixView<const T> SmallFactor<T>::upload(const std::shared_ptr<Backend>& backend,
                                           const SmallMatrix<Accumulator<T>>& small) {
  const Index elements = small.rows() * small.cols();
  host_.clear();
  for (Index j = 0; j < small.cols(); ++j)
    for (Index i = 0; i < small.rows(); ++i) host_.push_back(rounded<T>(small(i, j)));
  memory_.reserve(backend, elements);
  backend->upload(host_.data(), memory_.data(), elements * static_cast<Index>(sizeof(T)));
  return memory_.matrix(small.rows(), small.cols());
}

template <Scalar T>
void BlockBasis<T>::reserve(Index columns) {
  for (Scratch<T>& block : blocks_) block.matrix(space_, uncut_columns(columns));
  factor_.reserve(space_.grid->backend(), columns * columns);
  products_.reserve(space_.grid->backend(), columns * columns);
  panel_.reserve(space_.grid->backend(),
                 std::min(block_panel_rows, candidate(columns).local().rows) * columns);
}

template <Scalar T>
DistMatrix<T> BlockBasis<T>::candidate(Index columns) {
  candidate_width_ = columns;
  return blocks_[1 - current_].matrix(space_, uncut_columns(columns));
}

template <Scalar T>
void BlockBasis<T>::add_product(double alpha, const DistMatrix<T>& X, const Small& S, DistMatrix<T>& Y) {
  if (S.rows() == 0 || S.cols() == 0) return;
  kernels().gemm(Op::none, Op::none, to_scalar<T>(alpha), X.local(),
                 factor_.upload(space_.grid->backend(), S), T(1), Y.local());
}

template <Scalar T>
void BlockBasis<T>::add_products(const DistMatrix<T>& X, const DistMatrix<T>& Y, ColumnSums<T>& sums) {
  const Index elements = X.cols() * Y.cols();
  constexpr Index reals = is_complex<T> ? 2 : 1;
  numbers_.assign(at(elements * reals), 0.0);
  if (X.owned() && elements > 0) {
    Backend& backend = *space_.grid->backend();
    products_.reserve(space_.grid->backend(), elements);
    kernels().gemm(Op::adjoint, Op::none, T(1), X.local(), Y.local(), T(0),
                   products_.matrix(X.cols(), Y.cols()));
    host_products_.resize(at(elements));
    backend.download(products_.data(), host_products_.data(), elements * static_cast<Index>(sizeof(T)));
    const auto* parts = reinterpret_cast<const Real<T>*>(host_products_.data());
    std::copy_n(parts, elements * reals, numbers_.begin());
  }
  first_product_ = sums.add_numbers(numbers_);
}

/// The products that were added last.
template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::reduced_products(const ColumnSums<T>& sums, Index rows,
                                                              Index cols) {
  Small result(rows, cols);
  std::size_t next = first_product_;
  for (Index j = 0; j < cols; ++j) {
    for (Index i = 0; i < rows; ++i) {
      if constexpr (is_complex<T>) {
        result(i, j) = {sums.number(next), sums.number(next + 1)};
        next += 2;
      } else {
        result(i, j) = sums.number(next++);
      }
    }
  }
  return result;
}

template <Scalar T>
void BlockBasis<T>::add_gram(ColumnSums<T>& sums) {
  const DistMatrix<T> W = candidate(candidate_width_);
  add_products(W, W, sums);
}

/// Takes from the candidate W what the block U has in it, and returns the Gram matrix of what is left.
template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::project_candidate(ColumnSums<T>& sums) {
  DistMatrix<T> W = candidate(candidate_width_);
  const DistMatrix<T> U = block();
  sums.begin(0);
  add_products(U, W, sums);
  const std::size_t first_cross = first_product_;
  add_products(W, W, sums);
  sums.reduce();
  Small gram = reduced_products(sums, W.cols(), W.cols());
  first_product_ = first_cross;
  const Small cross = reduced_products(sums, U.cols(), W.cols());
  add_product(-1, U, cross, W);
  const Small taken = product(adjoint(cross), cross);
  for (Index j = 0; j < W.cols(); ++j)
    for (Index i = 0; i < W.cols(); ++i) gram(i, j) -= taken(i, j);
  return gram;
}

/// In place, a panel of rows at a time.
template <Scalar T>
void BlockBasis<T>::transform_candidate(const Small& C) {
  const MatrixView<T> W = candidate(candidate_width_).local();
  const MatrixView<const T> factor = factor_.upload(space_.grid->backend(), C);
  for (Index begin = 0; begin < W.rows; begin += block_panel_rows) {
    const Range rows{begin, std::min(block_panel_rows, W.rows - begin)};
    const MatrixView<T> old(panel_.data(), rows.size, W.cols);
    kernels().copy(W.row_block(rows), old);
    kernels().gemm(Op::none, Op::none, T(1), old, factor, T(0), W.block(rows, {0, C.cols()}));
  }
  candidate_width_ = C.cols();
}

template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::adopt(ColumnSums<T>& sums, double norm) {
  Small gram = reduced_products(sums, candidate_width_, candidate_width_);
  Small K = Small::identity(candidate_width_);
  std::vector<double> lengths(at(candidate_width_), 1.0);  // of K's rows, as parts of the first candidate
  for (Index j = 0; j < gram.cols(); ++j) norm = std::max(norm, std::sqrt(std::real(gram(j, j))));
  for (int pass = 1; pass <= most_passes; ++pass) {
    if (pass > 1) gram = project_candidate(sums);
    GramFactors<Accumulator<T>> factors = factor_gram(gram, gram_floor<T>);
    std::vector<Index> kept;
    std::vector<double> kept_lengths;
    bool well_conditioned = true;
    for (std::size_t r = 0; r < factors.lengths.size(); ++r) {
      const double length = factors.lengths[r] * lengths[at(factors.origins[r])];
      // Only the second pass knows how long a direction is that the first found hidden by others.
      if (pass > 1 && length <= 30 * epsilon<T> * norm) continue;
      kept.push_back(static_cast<Index>(r));
      kept_lengths.push_back(length);
      well_conditioned = well_conditioned && factors.lengths[r] >= 0.5;
    }
    factors = factors.select(kept);
    lengths = std::move(kept_lengths);
    transform_candidate(factors.C);
    K = product(factors.R, K);
    if (pass > 1 && well_conditioned) break;
  }
  current_ = 1 - current_;
  width_ = candidate_width_;
  return K;
}

#define GRIDLOPS_INSTANTIATE(T)  \
  template class SmallFactor<T>; \
  template class BlockBasis<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
