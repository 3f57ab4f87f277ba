// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/block_basis.hpp"

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

/// In a Gram matrix, squared lengths below 100 ε times the largest are mostly rounding.
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
std::vector<typename BlockBasis<T>::Part> BlockBasis<T>::parts() {
  const auto block = [](Index rows, Index columns) { return rows * columns; };
  const auto small = [](Index, Index columns) { return columns * columns; };
  const auto panel = [](Index rows, Index columns) { return std::min(block_panel_rows, rows) * columns; };
  return {
      {&blocks_[0], block}, {&blocks_[1], block}, {&factor_, small}, {&products_, small}, {&panel_, panel}};
}

template <Scalar T>
void BlockBasis<T>::describe(const char* name, std::vector<Space> stack, MethodState<T>& state) {
  for (const Part& part : parts()) state.memory(*part.buffer, space_, part.elements);
  state.number(width_);
  state.shared(
      name, [this] { return block(); }, std::move(stack));
}

template <Scalar T>
void BlockBasis<T>::reserve(Index columns) {
  for (const Part& part : parts())
    part.buffer->reserve(space_.grid->backend(), part.elements(space_.local_rows(), columns));
}

/// Copies a small matrix to the backend's memory. Invalidates the previous copy.
template <Scalar T>
MatrixView<const T> BlockBasis<T>::upload(const Small& small) {
  host_.clear();
  for (Index j = 0; j < small.cols(); ++j)
    for (Index i = 0; i < small.rows(); ++i) host_.push_back(rounded<T>(small(i, j)));
  space_.grid->backend()->upload(host_.data(), factor_.data(), static_cast<Index>(host_.size() * sizeof(T)));
  return factor_.matrix(small.rows(), small.cols());
}

template <Scalar T>
DistMatrix<T> BlockBasis<T>::candidate(Index columns) {
  candidate_width_ = columns;
  return matrix(1 - current_, columns);
}

template <Scalar T>
void BlockBasis<T>::add_product(double alpha, const ConstDistMatrix<T>& X, const Small& S, DistMatrix<T>& Y) {
  if (S.rows() == 0 || S.cols() == 0) return;
  kernels().gemm(Op::none, Op::none, to_scalar<T>(alpha), X.local(), upload(S), T(1), Y.local());
}

/// Appends this rank's share of XᴴY to the numbers.
template <Scalar T>
void BlockBasis<T>::add_local_products(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
  const Index elements = X.cols() * Y.cols();
  constexpr Index reals = is_complex<T> ? 2 : 1;
  const std::size_t first = numbers_.size();
  numbers_.resize(first + at(elements * reals), 0.0);
  if (!X.owned() || elements == 0) return;
  kernels().gemm(Op::adjoint, Op::none, T(1), X.local(), Y.local(), T(0),
                 products_.matrix(X.cols(), Y.cols()));
  host_.resize(at(elements));
  space_.grid->backend()->download(products_.data(), host_.data(), elements * static_cast<Index>(sizeof(T)));
  const auto* parts = reinterpret_cast<const Real<T>*>(host_.data());
  std::copy_n(parts, elements * reals, numbers_.begin() + static_cast<std::ptrdiff_t>(first));
}

/// The products that start at this position of the numbers, after summing over the ranks.
template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::summed_products(std::size_t first, Index rows,
                                                             Index cols) const {
  Small result(rows, cols);
  std::size_t next = first;
  for (Index j = 0; j < cols; ++j) {
    for (Index i = 0; i < rows; ++i) {
      if constexpr (is_complex<T>) {
        result(i, j) = {numbers_[next], numbers_[next + 1]};
        next += 2;
      } else {
        result(i, j) = numbers_[next++];
      }
    }
  }
  return result;
}

template <Scalar T>
std::vector<double>& BlockBasis<T>::local_gram() {
  const ConstDistMatrix<T> W = candidate(candidate_width_);
  numbers_.clear();
  add_local_products(W, W);
  return numbers_;
}

/// Makes the candidate W orthogonal to the block U, and returns the Gram matrix of the result, and the
/// fraction of each squared length there that is rounding.
template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::project_candidate(const SumOver& sum,
                                                               std::vector<double>& floors) {
  DistMatrix<T> W = candidate(candidate_width_);
  const ConstDistMatrix<T> U = block();
  numbers_.clear();
  add_local_products(U, W);
  const std::size_t first_gram = numbers_.size();
  add_local_products(W, W);
  sum(numbers_);
  const Small cross = summed_products(0, U.cols(), W.cols());
  Small gram = summed_products(first_gram, W.cols(), W.cols());
  add_product(-1, U, cross, W);
  const Small taken = product(adjoint(cross), cross);
  for (Index j = 0; j < W.cols(); ++j) {
    // If a column lay almost entirely in U, the remainder is rounding here. The next pass finds its length.
    const double least = gram_floor<T> * std::real(gram(j, j));
    for (Index i = 0; i < W.cols(); ++i) gram(i, j) -= taken(i, j);
    gram(j, j) = std::max(std::real(gram(j, j)), least);
    if (least > 0) floors[at(j)] = least / std::real(gram(j, j));
  }
  return gram;
}

/// candidate ← candidate · C, in place, one panel of rows at a time.
template <Scalar T>
void BlockBasis<T>::transform_candidate(const Small& C) {
  const MatrixView<T> W = candidate(candidate_width_).local();
  const MatrixView<const T> factor = upload(C);
  for (Index begin = 0; begin < W.rows; begin += block_panel_rows) {
    const Range rows{begin, std::min(block_panel_rows, W.rows - begin)};
    const MatrixView<T> old(panel_.data(), rows.size, W.cols);
    kernels().copy(W.row_block(rows), old);
    kernels().gemm(Op::none, Op::none, T(1), old, factor, T(0), W.block(rows, {0, C.cols()}));
  }
  candidate_width_ = C.cols();
}

template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::adopt(const SumOver& sum, double norm) {
  Small gram = summed_products(0, candidate_width_, candidate_width_);
  Small K = Small::identity(candidate_width_);
  std::vector<double> lengths(at(candidate_width_), 1.0);  // of K's rows, as fractions of the first candidate
  for (Index j = 0; j < gram.cols(); ++j) norm = std::max(norm, std::sqrt(std::real(gram(j, j))));
  for (int pass = 1; pass <= most_passes; ++pass) {
    std::vector<double> floors(at(candidate_width_), gram_floor<T>);
    if (pass > 1) gram = project_candidate(sum, floors);
    GramFactors<Accumulator<T>> factors = factor_gram(gram, floors);
    std::vector<Index> kept;
    std::vector<double> kept_lengths;
    bool well_conditioned = true;
    for (std::size_t r = 0; r < factors.lengths.size(); ++r) {
      const double length = factors.lengths[r] * lengths[at(factors.origins[r])];
      // If the first pass found a direction hidden by others, only the second pass knows its length.
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

#define GRIDLOPS_INSTANTIATE(T) template class BlockBasis<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
