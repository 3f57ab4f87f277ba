// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/block_bidiagonalisation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/damping_curve.hpp"

namespace gridlops {

namespace {

bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

}  // namespace

template <Scalar T>
bool BlockBidiagonalisation<T>::begin(const ConstDistMatrix<T>& B, bool has_probe) {
  Small beta = begin_u(B, has_probe);
  const bool is_finite = begin_v();
  projected_.begin(std::move(beta), L_);
  return is_finite;
}

template <Scalar T>
typename BlockBidiagonalisation<T>::Step BlockBidiagonalisation<T>::grow() {
  if (u_.width() == 0 || v_.width() == 0) return Step::complete;
  Small K, L;
  if (!grow_u(K) || !grow_v(K, L)) return Step::non_finite;
  projected_.extend(std::move(K), L);
  L_ = std::move(L);
  return Step::made;
}

template <Scalar T>
void BlockBidiagonalisation<T>::visit(StateArchive& archive) {
  archive.visit_list(powers_);
  archive.visit_list(data_norms_);
  const Index columns = std::ssize(powers_);
  archive.visit(power_, L_, norm_, products_);
  projected_.visit(archive, columns);
  u_.visit(archive, columns);
  v_.visit(archive, columns);
  if (!archive.loading()) return;
  // The last blocks may be spoilt; then nothing goes on with them.
  const Index vectors = std::accumulate(v_.filled().begin(), v_.filled().end(), Index{0});
  constexpr int largest_power = 10000;  // beyond all exponents of doubles
  for (const int power : powers_) archive.require(std::abs(power) <= largest_power);
  archive.require(std::abs(power_) <= largest_power && power_ % 2 == 0 &&
                  std::ssize(data_norms_) == columns && norm_ >= 0 && std::isfinite(norm_) &&
                  projected_.dimension() <= vectors && L_.rows() <= columns && L_.cols() <= columns);
}

template <Scalar T>
bool BlockBidiagonalisation<T>::can_grow() const {
  const Small& last = projected_.last();
  const Index vectors = std::accumulate(v_.filled().begin(), v_.filled().end(), Index{0});
  return L_.rows() == v_.width() && L_.cols() == u_.width() && last.rows() == L_.rows() &&
         last.cols() == L_.cols() && projected_.dimension() + v_.width() == vectors;
}

template <Scalar T>
auto BlockBidiagonalisation<T>::shapes() const -> std::vector<Shape> {
  std::vector<Shape> all;
  for (const Index count : v_.filled())
    if (count > 0) all.push_back({message("vectors-", all.size()), A_.cols(), count});
  if (u_.width() > 0) all.push_back({"left", A_.rows(), u_.width()});
  return all;
}

template <Scalar T>
std::vector<NamedMatrix<T>> BlockBidiagonalisation<T>::vectors() {
  std::vector<NamedMatrix<T>> all;
  std::vector<DistMatrix<T>> kept = v_.kept();
  if (u_.width() > 0) kept.push_back(u_.block());
  for (const Shape& shape : shapes()) all.push_back({shape.name, std::move(kept[all.size()])});
  return all;
}

/// Makes U₁ from the columns of B that are finite and not 0, and returns β with all columns.
template <Scalar T>
typename BlockBidiagonalisation<T>::Small BlockBidiagonalisation<T>::begin_u(const ConstDistMatrix<T>& B,
                                                                             bool has_probe) {
  const Index count = B.cols() + (has_probe ? 1 : 0);
  attempt(comm(), [&] {
    u_.reserve(count);
    v_.reserve(count);
  });
  DistMatrix<T> R = u_.candidate(count), data = R.column_slice({0}, B.layout().cols.partition);
  copy(B, data);
  if (has_probe)
    R.column_slice({B.cols()}, uncut_columns(1)).fill([](Index i, Index) {
      return T(static_cast<Real<T>>(gcv_probe(i)));
    });
  powers_ = powers_of_columns(R);
  multiply_by_powers(R, opposite(powers_));
  data_norms_ = column_norms(R);
  ColumnScalars inverses(count);
  std::vector<Index> chosen;
  for (Index j = 0; j < count; ++j) {
    if (!(data_norms_[at(j)] > 0) || !std::isfinite(data_norms_[at(j)])) continue;
    inverses[j] = 1 / data_norms_[at(j)];
    chosen.push_back(j);
  }
  R *= inverses;
  const Kernels<T>& kernels = R.grid()->backend()->template kernels<T>();
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const auto to = static_cast<Index>(c);
    if (to != chosen[c]) kernels.copy(R.local().col_block({chosen[c], 1}), R.local().col_block({to, 1}));
  }
  u_.candidate(std::ssize(chosen));
  Small K;
  adopt(u_, 0, K);
  Small beta(K.rows(), count);
  for (std::size_t c = 0; c < chosen.size(); ++c)
    for (Index i = 0; i < K.rows(); ++i)
      beta(i, chosen[c]) = K(i, static_cast<Index>(c)) * data_norms_[at(chosen[c])];
  return beta;
}

/// V₁ L₁ = Aᴴ U₁, which also tells by what power of two A is multiplied. False if that is not finite.
template <Scalar T>
bool BlockBidiagonalisation<T>::begin_v() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  attempt(comm(), [&] { v_.reserve(u_.width()); });
  for (int tries = 0;; ++tries) {
    const std::vector<double> sizes = column_norms(next_v(), infinity);
    double largest = 0;
    for (const double size : sizes) largest = std::isnan(size) ? infinity : std::max(largest, size);
    const int change = sizes.empty() ? 0 : change_of_power<T>(largest, power_, tries);
    if (change == 0) return adopt_v(L_);
    power_ += change;
  }
}

template <Scalar T>
void BlockBidiagonalisation<T>::apply_adjoint(const ConstDistMatrix<T>& Y, DistMatrix<T>& X) {
  A_.set_power(power_, Y.layout().cols.partition);
  A_.apply_adjoint(T(1), Y, T(0), X);
}

/// U₊ K = A V − U Lᴴ. False if that is not finite.
template <Scalar T>
bool BlockBidiagonalisation<T>::grow_u(Small& K) {
  DistMatrix<T> Z = u_.candidate(v_.width());
  A_.set_power(power_, Z.layout().cols.partition);
  A_.apply(T(1), v_.block(), T(0), Z);
  products_ += v_.width();
  u_.add_product(-1, u_.block(), adjoint(L_), Z);
  if (!adopt(u_, norm_, K)) return false;
  for (Index i = 0; i < K.cols(); ++i)  // ‖A v‖ ≤ ‖A‖
    norm_ = std::max(norm_, std::sqrt(K.column_norm_squared(i)));
  return true;
}

/// V₊ L₊ = Aᴴ U₊ − V Kᴴ. False if that is not finite.
template <Scalar T>
bool BlockBidiagonalisation<T>::grow_v(const Small& K, Small& L) {
  attempt(comm(), [&] { v_.reserve(u_.width()); });
  const DistMatrix<T> last = v_.block();
  DistMatrix<T> W = next_v();
  v_.add_product(-1, last, adjoint(K), W);
  return adopt_v(L);
}

/// The candidate of V ← Aᴴ U.
template <Scalar T>
DistMatrix<T> BlockBidiagonalisation<T>::next_v() {
  DistMatrix<T> W = v_.candidate(u_.width());
  apply_adjoint(u_.block(), W);
  products_ += u_.width();
  return W;
}

template <Scalar T>
bool BlockBidiagonalisation<T>::adopt_v(Small& L) {
  L = Small(0, u_.width());
  if (!adopt(v_, norm_, L)) {
    v_.forget();
    return false;
  }
  for (Index i = 0; i < L.cols(); ++i) norm_ = std::max(norm_, std::sqrt(L.column_norm_squared(i)));
  return true;
}

/// Replaces the block by its candidate = block · factor. False if the candidate is not finite.
template <Scalar T>
bool BlockBidiagonalisation<T>::adopt(BlockBasis<T>& basis, double norm, Small& factor) {
  const auto sum = [this](std::vector<double>& numbers) { FailureScope().reduce(comm(), numbers); };
  std::vector<double>& gram = basis.local_gram();
  sum(gram);
  if (!all_finite(gram)) return false;
  factor = basis.adopt(sum, norm);
  return true;
}

#define GRIDLOPS_INSTANTIATE(T) template class BlockBidiagonalisation<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
