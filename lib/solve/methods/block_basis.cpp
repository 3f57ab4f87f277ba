// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/block_basis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

namespace {

constexpr int most_passes = 4;
constexpr Index least_columns = 32;  // of buffers
/// Blocks of this many columns that are all kept share buffers of whole blocks, 32 columns or more.
constexpr Index buffer_columns(Index columns) {
  return columns == 0 ? least_columns : columns * ((least_columns + columns - 1) / columns);
}

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
std::vector<typename BlockBasis<T>::KeptBuffer> BlockBasis<T>::kept_buffers() {
  const auto block = [](Index rows, Index columns) { return rows * columns; };
  const auto small = [](Index, Index columns) { return columns * columns; };
  const auto panel = [most = most_panel_rows()](Index rows, Index columns) {
    return std::min(most, rows) * columns;
  };
  return {
      {&blocks_[0], block}, {&blocks_[1], block}, {&factor_, small}, {&products_, small}, {&panel_, panel}};
}

template <Scalar T>
void BlockBasis<T>::describe(const char* name, std::vector<Space> stack, MethodState<T>& state) {
  for (const KeptBuffer& kept : kept_buffers()) state.memory(*kept.buffer, space_, kept.elements);
  state.count(width_);
  state.shared(
      name, [this] { return block(); }, std::move(stack));
}

template <Scalar T>
void BlockBasis<T>::reserve(Index columns) {
  const auto& backend = space_.grid->backend();
  const Index rows = space_.local_rows();
  if (keeps_ == Keeps::last_block) {
    for (const KeptBuffer& kept : kept_buffers()) kept.buffer->reserve(backend, kept.elements(rows, columns));
    return;
  }
  const Index most = buffer_columns(columns);
  reserve_products(columns);
  panel_.reserve(backend, std::min(most_panel_rows(), rows) * columns);
  if (blocks_.empty() || filled_.back() + columns > capacities_.back()) {
    blocks_.emplace_back(backend, rows * most);
    capacities_.push_back(most);
    filled_.push_back(0);
  }
  candidate_ = {blocks_.size() - 1, filled_.back()};
}

template <Scalar T>
void BlockBasis<T>::reserve_products(Index columns) {
  const auto& backend = space_.grid->backend();
  Index most = buffer_columns(columns);
  for (const Index filled : filled_) most = std::max(most, filled);
  factor_.reserve(backend, most * columns);
  products_.reserve(backend, most * columns);
}

template <Scalar T>
Index BlockBasis<T>::elements_at(int row, int col, Index columns, Index vectors) {
  const Index rows = space_.layout(uncut_columns(columns)).row_range(*space_.grid, row, col).size;
  if (keeps_ == Keeps::last_block) {
    Index elements = 0;
    for (const KeptBuffer& kept : kept_buffers()) elements += kept.elements(rows, columns);
    return elements;
  }
  const Index of_buffer = buffer_columns(columns), with_block = vectors + columns;
  const Index buffers = (with_block + of_buffer - 1) / of_buffer;
  return buffers * of_buffer * rows + 2 * of_buffer * columns + std::min(most_panel_rows(), rows) * columns;
}

template <Scalar T>
DistMatrix<T> BlockBasis<T>::matrix(Place place, Index columns) {
  const MatrixView<T> all = blocks_[place.buffer].matrix(space_.local_rows(), place.first + columns);
  return DistMatrix<T>(space_.grid, space_.layout(uncut_columns(columns)),
                       all.col_block({place.first, columns}));
}

template <Scalar T>
std::vector<DistMatrix<T>> BlockBasis<T>::kept() {
  std::vector<DistMatrix<T>> vectors;
  if (keeps_ == Keeps::last_block) vectors.push_back(block());
  for (std::size_t b = 0; b < filled_.size(); ++b)
    if (filled_[b] > 0) vectors.push_back(matrix({b, 0}, filled_[b]));
  return vectors;
}

template <Scalar T>
void BlockBasis<T>::visit(StateArchive& archive, Index columns) {
  archive.visit_count(width_, columns);
  archive.visit_list(capacities_);
  archive.visit_list(filled_);
  if (!archive.loading()) return;
  archive.require(filled_.size() == capacities_.size() && (keeps_ == Keeps::all_blocks || filled_.empty()));
  for (std::size_t b = 0; b < filled_.size(); ++b)
    archive.require(0 <= filled_[b] && filled_[b] <= capacities_[b] &&
                    capacities_[b] <= std::max(filled_[b], columns + least_columns) &&
                    (filled_[b] > 0 || b + 1 == filled_.size()));
  archive.require(keeps_ == Keeps::last_block || width_ <= (filled_.empty() ? 0 : filled_.back()));
}

template <Scalar T>
void BlockBasis<T>::take_memory() {
  if (keeps_ == Keeps::last_block) return reserve(width_);
  for (const Index capacity : capacities_)
    blocks_.emplace_back(space_.grid->backend(), space_.local_rows() * capacity);
  if (!blocks_.empty()) block_ = {blocks_.size() - 1, filled_.back() - width_};
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
  return matrix(candidate_, columns);
}

template <Scalar T>
void BlockBasis<T>::add_product(double alpha, const ConstDistMatrix<T>& X, const Small& S, DistMatrix<T>& Y) {
  if (S.rows() == 0 || S.cols() == 0) return;
  kernels().gemm(Op::none, Op::none, to_scalar<T>(alpha), X.local(), upload(S), T(1), Y.local());
}

template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::products_with(const ConstDistMatrix<T>& Y, const SumOver& sum) {
  numbers_.clear();
  std::vector<std::size_t> first;
  const std::vector<DistMatrix<T>> basis = kept();
  for (const DistMatrix<T>& U : basis) {
    first.push_back(numbers_.size());
    add_local_products(U, Y);
  }
  sum(numbers_);
  Small products(0, Y.cols());
  for (std::size_t b = 0; b < basis.size(); ++b)
    products = stacked(products, summed_products(first[b], basis[b].cols(), Y.cols()));
  return products;
}

template <Scalar T>
void BlockBasis<T>::add_combination(const Small& S, DistMatrix<T>& Y) {
  Index first = 0;
  std::vector<DistMatrix<T>> basis = kept();
  for (DistMatrix<T>& vectors : basis) {
    const Index count = std::min(vectors.cols(), S.rows() - first);
    if (count <= 0) break;
    add_product(1, vectors.column_slice({0}, uncut_columns(count)), S.row_block({first, count}), Y);
    first += count;
  }
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

/// Makes the candidate W orthogonal to what is kept, and returns the Gram matrix of the result, and the
/// fraction of each squared length there that is rounding.
template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::project_candidate(const SumOver& sum,
                                                               std::vector<double>& floors) {
  DistMatrix<T> W = candidate(candidate_width_);
  const std::vector<DistMatrix<T>> basis = kept();
  numbers_.clear();
  add_local_products(W, W);
  std::vector<std::size_t> first;
  for (const DistMatrix<T>& U : basis) {
    first.push_back(numbers_.size());
    add_local_products(U, W);
  }
  sum(numbers_);
  Small gram = summed_products(0, W.cols(), W.cols());
  // If a column lay almost entirely in the basis, the remainder is rounding here. The next pass finds its
  // length.
  std::vector<double> least;
  for (Index j = 0; j < W.cols(); ++j) least.push_back(gram_floor<T> * std::real(gram(j, j)));
  for (std::size_t b = 0; b < basis.size(); ++b) {
    const Small cross = summed_products(first[b], basis[b].cols(), W.cols());
    add_product(-1, basis[b], cross, W);
    const Small taken = product(adjoint(cross), cross);
    for (Index j = 0; j < W.cols(); ++j)
      for (Index i = 0; i < W.cols(); ++i) gram(i, j) -= taken(i, j);
  }
  for (Index j = 0; j < W.cols(); ++j) {
    gram(j, j) = std::max(std::real(gram(j, j)), least[at(j)]);
    if (least[at(j)] > 0) floors[at(j)] = least[at(j)] / std::real(gram(j, j));
  }
  return gram;
}

/// candidate ← candidate · C, in place, one panel of rows at a time.
template <Scalar T>
void BlockBasis<T>::transform_candidate(const Small& C) {
  const MatrixView<T> W = candidate(candidate_width_).local();
  const MatrixView<const T> factor = upload(C);
  for (Index begin = 0; begin < W.rows;) {
    const Range rows{begin, std::min(most_panel_rows(), W.rows - begin)};
    const MatrixView<T> old(panel_.data(), rows.size, W.cols);
    kernels().copy(W.row_block(rows), old);
    kernels().gemm(Op::none, Op::none, T(1), old, factor, T(0), W.block(rows, {0, C.cols()}));
    begin = rows.end();
  }
  candidate_width_ = C.cols();
}

template <Scalar T>
typename BlockBasis<T>::Small BlockBasis<T>::adopt(const SumOver& sum, double norm) {
  Small gram = summed_products(0, candidate_width_, candidate_width_);
  Small K;
  std::vector<double> lengths(at(candidate_width_), 1.0);  // of K's rows, as fractions of the first candidate
  for (Index j = 0; j < gram.cols(); ++j) norm = std::max(norm, std::sqrt(std::real(gram(j, j))));
  for (int pass = 1; pass <= most_passes; ++pass) {
    std::vector<double> floors(at(candidate_width_), gram_floor<T>);
    if (pass > 1) gram = project_candidate(sum, floors);
    GramFactors<Accumulator<T>> factors = factor_gram(gram, floors, lengths);
    std::vector<Index> kept;
    std::vector<double> kept_lengths;
    bool well_conditioned = true;
    for (std::size_t r = 0; r < factors.lengths.size(); ++r) {
      const double length = factors.lengths[r] * lengths[at(factors.origins[r])];
      // If the first pass found a direction hidden by others, only the second pass knows its length.
      if (pass > 1 && length <= shortest_direction * epsilon<T> * norm) continue;
      kept.push_back(static_cast<Index>(r));
      kept_lengths.push_back(length);
      well_conditioned = well_conditioned && factors.lengths[r] >= 0.5;
    }
    factors = factors.select(kept);
    lengths = std::move(kept_lengths);
    transform_candidate(factors.C);
    K = pass == 1 ? std::move(factors.R) : product(factors.R, K);
    if (pass > 1 && well_conditioned) break;
  }
  width_ = candidate_width_;
  if (keeps_ == Keeps::last_block) {
    std::swap(block_, candidate_);
  } else {
    block_ = candidate_;
    filled_.back() += width_;
  }
  return K;
}

#define GRIDLOPS_INSTANTIATE(T) template class BlockBasis<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
