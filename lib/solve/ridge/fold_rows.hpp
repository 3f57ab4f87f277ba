// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/buffer.hpp"
#include "solve/factor/whole_rows.hpp"

namespace gridlops {

/// Whether A Aᴴ is decomposed, and not AᴴA. If all rows are predicted, each from the others, also where A may
/// interpolate: AᴴA and a small damping would not tell how much of the data is left in that case.
constexpr bool is_ridge_of_data(Index rows, Index cols, bool predicts_all) {
  return rows < cols || (predicts_all && rows <= cols + 1);
}

/// The rows of A in the order of their folds: those of a fold are together, those of a rank together in it.
/// Each is whole on one rank. What is kept is 2^power √w (row − reference), with the weight w of the row,
/// where the reference is the mean of all rows if they are centred, else 0.
template <Scalar T>
class FoldRows {
  using Wide = Accumulator<T>;

 public:
  /// The rows that ranks send each other together, at most.
  static constexpr Index together = 512;

  /// fold_of_row: from 0 on, less than folds; the same on all ranks.
  /// weights: of the rows, in their order.
  FoldRows(const MatrixInBlocks<T>& A, const ProcessGrid& grid, Index cols, std::vector<Index> fold_of_row,
           Index folds, std::vector<double> weights, bool centred, bool of_data)
      : A_(A),
        grid_(grid),
        comm_(grid.comm()),
        cols_(cols),
        fold_of_row_(std::move(fold_of_row)),
        folds_(folds),
        weights_(std::move(weights)),
        centred_(centred),
        of_data_(of_data) {}

  /// Reads A twice (collective over the grid). Throws InputError, on all ranks, if an element is not finite.
  void read() {
    look();
    sort();
    keep();
  }

  Index rows() const { return std::ssize(fold_of_row_); }
  Index cols() const { return cols_; }
  Index folds() const { return folds_; }
  /// is_ridge_of_data().
  bool of_data() const { return of_data_; }
  int power() const { return power_; }
  const std::vector<Wide>& reference() const { return reference_; }
  /// The places of a fold.
  Range fold(Index f) const {
    return {first_[at(f * ranks())], first_[at((f + 1) * ranks())] - first_[at(f * ranks())]};
  }
  /// The weight of each row of A, and the root of it at each place.
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<double>& roots() const { return roots_; }
  /// Whether rows have different weights, so that equal rows are not kept as equal ones.
  bool is_weighted() const { return is_weighted_; }
  /// The sum of the weights of a fold, or of all folds but one.
  double weight_of(Index f) const { return weight_of_fold_[at(f)]; }
  double weight_of_others(Index f) const {
    double sum = 0;
    for (Index g = 0; g < folds_; ++g)
      if (g != f) sum += weight_of(g);
    return sum;
  }
  /// The number in A of the row at each place; the same on all ranks.
  const std::vector<Index>& numbers() const { return numbers_; }
  /// The places of a rank's rows of a fold; of this rank's, and their elements.
  Range places(Index f, int rank) const {
    const Index k = f * ranks() + rank;
    return {first_[at(k)], first_[at(k + 1)] - first_[at(k)]};
  }
  Range my_places(Index f) const { return places(f, comm_.rank()); }
  MatrixView<const T> mine(Index f) const {
    return store_.matrix(my_rows_, cols_).row_block({my_first_[at(f)], my_places(f).size});
  }

  /// Calls use(fold, places, elements) for all rows in order, some at a time, which are all of one fold and
  /// rank (collective over the grid). It throws nothing.
  template <class Use>
  void for_each(const Use& use) const {
    for (Index f = 0; f < folds_; ++f)
      for (int rank = 0; rank < comm_.size(); ++rank) {
        const Range all = places(f, rank);
        for (Index first = 0; first < all.size; first += together) {
          const Range some{all.begin + first, std::min(together, all.size - first)};
          use(f, some, sent(f, rank, first, some.size));
        }
      }
  }
  /// Copies all rows of a fold to `whole`, in order, on the rank `root`, which alone uses it (collective over
  /// the grid). message: memory for my_places(f).size rows.
  void gather(Index f, int root, MatrixView<T> whole, T* message, T* messages) {
    const MatrixView<const T> my_part = mine(f);
    for (Index j = 0; j < cols_; ++j)
      std::copy_n(my_part.column(j), my_part.rows, message + j * my_part.rows);
    for (int rank = 0; rank < comm_.size(); ++rank) counts_[at(rank)] = places(f, rank).size * cols_;
    const Index all = comm_.rank() == root ? fold(f).size * cols_ : 0;
    comm_.gather_v({message, my_part.size()}, {messages, all}, counts_, root);
    if (comm_.rank() != root) return;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const Range theirs = places(f, rank);
      for (Index j = 0; j < cols_; ++j)
        std::copy_n(messages + j * theirs.size, theirs.size, whole.column(j) + theirs.begin - fold(f).begin);
      messages += theirs.size * cols_;
    }
  }

 private:
  int ranks() const { return comm_.size(); }

  /// Finds which rows this rank gets, the mean of all rows, and how large elements are.
  void look() {
    FailureScope failures;
    std::vector<Wide> sums;
    std::array<double, 1> largest{};
    visit_whole_rows<T>(
        A_, Op::none, grid_, failures,
        [&](Range rows, MatrixView<const T> elements) {
          failures.run([&] {
            for (Index i = 0; i < rows.size; ++i) my_numbers_.push_back(rows.begin + i);
            for (Index j = 0; j < cols_; ++j)
              largest[0] = std::max(largest[0], add(elements, rows.begin, j, sums[at(j)]));
          });
        },
        [&] {
          sums.resize(at(cols_));
          reference_.assign(at(cols_), Wide(0));
          sums.reserve(at(cols_ + 1));  // the failure's number, too
        });
    failures.reduce(comm_, sums);
    comm_.all_reduce(largest, ReduceOp::max);
    // 2^(2 power), which dampings are multiplied by, must be a number.
    constexpr int least = 2 - std::numeric_limits<Real<T>>::max_exponent, most = std::min(-least, 500);
    power_ = largest[0] > 0 ? std::clamp(-std::ilogb(largest[0]), least, most) : 0;
    if (!centred_ || rows() == 0) return;
    // Of T, so that it is subtracted exactly where rows are close to it.
    const double weight = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (Index j = 0; j < cols_; ++j) reference_[at(j)] = Wide(T(sums[at(j)] / weight));
  }
  /// Adds to the weighted sum of column j, and returns its largest element times a root. Throws InputError if
  /// one is not finite.
  double add(MatrixView<const T> elements, Index first_row, Index j, Wide& sum) const {
    double largest = 0;
    const T* const column = elements.column(j);
    Wide of_these(0);
    for (Index i = 0; i < elements.rows; ++i) {
      const double weight = weights_[at(first_row + i)];
      of_these += Wide(column[i]) * weight;
      largest = std::max(largest, largest_part(column[i]) * std::sqrt(weight));
    }
    if (!std::isfinite(std::abs(of_these)))
      for (Index i = 0; i < elements.rows; ++i)
        require<InputError>(
            std::isfinite(largest_part(column[i])), "A has ", column[i], " at row ", first_row + i,
            ", column ", j,
            " (from 0), so that nothing can be fitted: leave the row out, or put a number there");
    sum += of_these;
    return largest;
  }
  static double largest_part(T element) {
    if constexpr (is_complex<T>) {
      return std::max<double>(std::abs(element.real()), std::abs(element.imag()));
    } else {
      return std::abs(static_cast<double>(element));
    }
  }

  /// Tells all ranks who has which rows, and puts them in order.
  void sort() {
    std::vector<Index> theirs, next;
    std::vector<int> owner;
    attempt(comm_, [&] {
      counts_.resize(at(ranks()));
      my_first_.reserve(at(folds_));
      theirs.resize(at(rows()));
      owner.resize(at(rows()));
      numbers_.resize(at(rows()));
      first_.assign(at(folds_ * ranks() + 1), 0);
      next.resize(first_.size());
      roots_.resize(at(rows()));
      weight_of_fold_.assign(at(folds_), 0.0);
    });
    const Index my_count = std::ssize(my_numbers_);
    comm_.all_gather(std::span(&my_count, 1), counts_);
    comm_.all_gather_v(my_numbers_, theirs, counts_);
    for (Index k = 0, place = 0; k < ranks(); ++k)
      for (Index i = 0; i < counts_[at(k)]; ++i, ++place) {
        owner[at(place)] = static_cast<int>(k);
        ++first_[at(fold_of_row_[at(theirs[at(place)])] * ranks() + k + 1)];
      }
    for (std::size_t k = 1; k < first_.size(); ++k) first_[k] += first_[k - 1];
    next = first_;
    for (Index k = 0; k < rows(); ++k)
      numbers_[at(next[at(fold_of_row_[at(theirs[at(k)])] * ranks() + owner[at(k)])]++)] = theirs[at(k)];
    is_weighted_ = false;
    for (std::size_t place = 0; place < roots_.size(); ++place) {
      const double weight = weights_[at(numbers_[place])];
      roots_[place] = std::sqrt(weight);
      weight_of_fold_[at(fold_of_row_[at(numbers_[place])])] += weight;
      is_weighted_ = is_weighted_ || weight != weights_.front();
    }
    my_rows_ = 0;
    for (Index f = 0; f < folds_; ++f) {
      my_first_.push_back(my_rows_);
      my_rows_ += my_places(f).size;
    }
  }

  void keep() {
    FailureScope failures;
    std::vector<Index> next;
    visit_whole_rows<T>(
        A_, Op::none, grid_, failures,
        [&](Range rows, MatrixView<const T> elements) {
          failures.run([&] {
            std::vector<Index> to;
            std::vector<Real<T>> scales;
            for (Index i = rows.begin; i < rows.end(); ++i) {
              to.push_back(next[at(fold_of_row_[at(i)])]++);
              scales.push_back(static_cast<Real<T>>(std::ldexp(std::sqrt(weights_[at(i)]), power_)));
            }
            for (Index j = 0; j < cols_; ++j) {
              const auto reference = T(reference_[at(j)]);
              T* const column = store_.data() + j * my_rows_;
              for (Index i = 0; i < rows.size; ++i)
                column[to[at(i)]] = (elements(i, j) - reference) * scales[at(i)];
            }
          });
        },
        [&] {
          next = my_first_;
          store_ = Buffer<T>(grid_.backend(), my_rows_ * cols_);
          Index most = 0;
          for (Index f = 0; f < folds_; ++f)
            for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, places(f, rank).size);
          if (ranks() > 1) message_ = Buffer<T>(grid_.backend(), std::min(most, together) * cols_);
        });
    failures.settle(comm_);
  }

  /// Some rows of a rank's fold, from the first-th on, on all ranks.
  MatrixView<const T> sent(Index f, int rank, Index first, Index count) const {
    if (ranks() == 1) return mine(f).row_block({first, count});
    const MatrixView<T> message = message_.matrix(count, cols_);
    if (rank == comm_.rank()) {
      const MatrixView<const T> rows = mine(f).row_block({first, count});
      for (Index j = 0; j < cols_; ++j) std::copy_n(rows.column(j), count, message.column(j));
    }
    comm_.broadcast(std::span(message.data, at(message.size())), rank);
    return message;
  }

  const MatrixInBlocks<T>& A_;
  const ProcessGrid& grid_;
  Communicator& comm_;
  const Index cols_;
  const std::vector<Index> fold_of_row_;
  const Index folds_;
  const std::vector<double> weights_;
  const bool centred_, of_data_;

  std::vector<Wide> reference_;
  int power_ = 0;
  std::vector<Index> my_numbers_, numbers_;
  std::vector<double> roots_, weight_of_fold_;
  bool is_weighted_ = false;
  std::vector<Index> counts_;    // of each rank, of what is sent
  std::vector<Index> first_;     // the first place of fold f and rank k at f·ranks + k
  std::vector<Index> my_first_;  // in the store, of each fold
  Index my_rows_ = 0;
  Buffer<T> store_;
  Buffer<T> message_;
};

}  // namespace gridlops
