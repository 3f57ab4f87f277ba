// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/trace.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/triangles.hpp"
#include "solve/ridge/ridge_models.hpp"
#include "solve/ridge/views.hpp"

namespace gridlops {

/// Weighted sums of each column of A over the rows of each fold, and their variances, the same on all ranks.
template <Scalar T>
class FoldSums {
  using Wide = Accumulator<T>;

 public:
  /// Collective. Throws OutOfMemory on all ranks.
  FoldSums(Communicator& comm, const FoldRows<T>& rows, bool with_squares) : rows_(rows) {
    attempt(comm, [&] {
      sums_.assign(at(rows.folds() * rows.cols()), Wide(0));
      centres_.assign(at(rows.cols()), Wide(0));
      if (with_squares) squares_.assign(sums_.size(), 0.0);
    });
    for_each_element([&](Index k, Index, double root, Wide element) { sums_[at(k)] += root * element; });
    comm.all_reduce(sums_, ReduceOp::sum);
    if (!with_squares) return;
    for (Index j = 0; j < rows.cols(); ++j)
      centres_[at(j)] = of_others(sums_, RidgeModel<T>::all, j) / rows.weight_of_others(RidgeModel<T>::all);
    for_each_element([&](Index k, Index j, double root, Wide element) {
      squares_[at(k)] += std::norm(element - root * centres_[at(j)]);
    });
    comm.all_reduce(squares_, ReduceOp::sum);
  }

  /// Sets trained, weight, mean and scale.
  void describe(RidgeModel<T>& model, const ModelOptions& options) const {
    const Index n = rows_.cols();
    model.trained = rows_.rows() - (model.fold == RidgeModel<T>::all ? 0 : rows_.fold(model.fold).size);
    model.mean.assign(at(n), Wide(0));
    model.scale.assign(at(n), 1.0);
    const double weight = model.weight = rows_.weight_of_others(model.fold);
    for (Index j = 0; j < n; ++j) {
      const Wide mean = of_others(sums_, model.fold, j) / weight;
      if (options.standardized) {
        const Wide shift = mean - centres_[at(j)];
        const double variance = of_others(squares_, model.fold, j) / weight - std::norm(shift);
        if (variance > rounding_of_variance(shift, j, model.trained)) {
          model.scale[at(j)] = 1 / std::sqrt(variance);
        } else if (!options.centred) {
          // A constant feature is as the caller has it.
          model.scale[at(j)] = std::ldexp(1.0, std::clamp(-rows_.power(), -400, 400));
        }
      }
      if (options.centred) model.mean[at(j)] = mean;
    }
  }

 private:
  /// use(f n + j, j, root of the weight, element) for the elements of this rank, in column j of fold f.
  template <class Use>
  void for_each_element(const Use& use) const {
    for (Index f = 0; f < rows_.folds(); ++f) {
      const MatrixView<const T> mine = rows_.mine(f);
      for (Index j = 0; j < mine.cols; ++j)
        for (Index i = 0; i < mine.rows; ++i)
          use(f * mine.cols + j, j, rows_.roots()[at(rows_.my_places(f).begin + i)], Wide(mine(i, j)));
    }
  }
  template <class Number>
  Number of_others(const std::vector<Number>& of_folds, Index fold, Index j) const {
    Number sum(0);
    for (Index g = 0; g < rows_.folds(); ++g)
      if (g != fold) sum += of_folds[at(g * rows_.cols() + j)];
    return sum;
  }
  /// The variance of a constant column over these many rows is no more than this.
  double rounding_of_variance(Wide shift, Index j, Index trained) const {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    // Sums of equal numbers have an error that may grow with their count.
    const double of_sums = epsilon * static_cast<double>(std::max<Index>(trained, 500)),
                 of_mean = epsilon * static_cast<double>(std::max<Index>(rows_.rows(), 100)),
                 centre = std::abs(centres_[at(j)]),
                 reference = std::ldexp(std::abs(rows_.reference()[at(j)]), rows_.power());
    // Each element has been rounded with its own weight.
    const double of_weights =
        rows_.is_weighted() ? 8 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) : 0;
    const double least =
        std::hypot(100 * epsilon * reference, of_mean * centre, of_weights * (std::abs(shift) + centre));
    return of_sums * std::norm(shift) + of_mean * std::abs(shift) * centre + least * least;
  }

  const FoldRows<T>& rows_;
  std::vector<Wide> sums_, centres_;
  std::vector<double> squares_;  // of the differences from the mean of all rows, the centres
};

/// S rowᴴ row of this rank's rows of each fold, and their sums over folds and ranks.
template <Scalar T>
class FoldGrams {
  using Wide = Accumulator<T>;

 public:
  /// Collective. Throws OutOfMemory on all ranks.
  FoldGrams(Communicator& comm, const std::shared_ptr<Backend>& backend, const FoldRows<T>& rows)
      : comm_(comm), rows_(rows), n_(rows.cols()) {
    ConvertedRows<T> converted(n_, 0);
    attempt(comm, [&] {
      grams_ = Buffer<Wide>(backend, rows.folds() * n_ * n_);
      message_ = Buffer<Wide>(backend, n_ * n_);
      if (converted.changes_elements()) converted.allocate(backend);
    });
    const TraceRegion region("Gram matrices of folds");
    const AtWork at_work;
    std::fill_n(grams_.data(), grams_.size(), Wide(0));
    for (Index f = 0; f < rows.folds(); ++f) {
      const auto add = [&](MatrixView<const Wide> some) {
        if (some.empty()) return;
        trace_flops(product_flops<T>(n_, some.rows, n_) / 2);
        cblas::add_gram(static_cast<cblas::Int>(n_), static_cast<cblas::Int>(some.rows), some.data,
                        static_cast<cblas::Int>(some.stride), of_fold(f), static_cast<cblas::Int>(n_));
      };
      if constexpr (std::is_same_v<T, Wide>) {
        add(rows.mine(f));
      } else {
        converted.for_each(rows.mine(f), [&](MatrixView<const Wide> some) { add(some); });
      }
    }
  }

  /// The upper triangle of the sum over all folds but this one, on the rank `root`, in G (collective).
  void sum_of_others(Index fold, int root, MatrixView<Wide> G) const {
    const MatrixView<Wide> mine = message_.matrix(n_, n_);
    std::fill_n(mine.data, mine.size(), Wide(0));
    for (Index g = 0; g < rows_.folds(); ++g)
      if (g != fold) std::transform(mine.data, mine.data + mine.size(), of_fold(g), mine.data, std::plus<>());
    pack_triangle(mine);
    const Index count = size_of_triangle(n_);
    const bool is_root = comm_.rank() == root;
    comm_.reduce(std::span<const Wide>(mine.data, at(count)), std::span(G.data, is_root ? at(count) : 0),
                 ReduceOp::sum, root);
    if (is_root) unpack_triangle(G);
  }

 private:
  Wide* of_fold(Index f) const { return grams_.data() + f * n_ * n_; }

  Communicator& comm_;
  const FoldRows<T>& rows_;
  const Index n_;
  Buffer<Wide> grams_, message_;
};

/// (A S)(A S)ᴴ, whole on every rank.
template <Scalar T>
class DataGram {
  using Wide = Accumulator<T>;

 public:
  /// Collective. Throws OutOfMemory on all ranks.
  DataGram(Communicator& comm, const std::shared_ptr<Backend>& backend, const FoldRows<T>& rows)
      : comm_(comm), rows_(rows) {
    const Index piece = std::min(FoldRows<T>::together, rows.rows()) * rows.cols();
    attempt(comm, [&] {
      K_ = Buffer<Wide>(backend, rows.rows() * rows.rows());
      theirs_ = Buffer<Wide>(backend, piece);
      mine_ = Buffer<Wide>(backend, piece);
    });
  }

  /// scale: the diagonal of S; empty: ones (collective).
  void compute(const std::vector<double>& scale) {
    const TraceRegion region("Gram matrix of rows");
    const MatrixView<Wide> K = view();
    std::fill_n(K.data, K.size(), Wide(0));
    // Pieces are numbered in order; of two, one of the two owners multiplies them.
    Index their_number = 0;
    rows_.for_each([&](Index, Range theirs, MatrixView<const T> their_rows) {
      const AtWork at_work;
      const MatrixView<Wide> B = scaled(their_rows, scale, theirs_);
      const Index number = their_number++;
      for (Index f = 0, piece = 0; f < rows_.folds(); ++f)
        for (int rank = 0; rank < comm_.size(); ++rank) {
          const Range all = rows_.places(f, rank);
          for (Index first = 0; first < all.size; first += FoldRows<T>::together, ++piece) {
            if (rank != comm_.rank() || (piece != number && (piece < number) != ((piece + number) % 2 == 0)))
              continue;
            const Range some{first, std::min(FoldRows<T>::together, all.size - first)};
            const MatrixView<Wide> A = scaled(rows_.mine(f).row_block(some), scale, mine_);
            multiply_adjoint(A, B, K.block({all.begin + first, some.size}, theirs));
            mirror(K, {all.begin + first, some.size}, theirs);
          }
        }
    });
    comm_.all_reduce(std::span(K.data, at(K.size())), ReduceOp::sum);
  }
  MatrixView<Wide> view() const { return K_.matrix(rows_.rows(), rows_.rows()); }

 private:
  MatrixView<Wide> scaled(MatrixView<const T> from, const std::vector<double>& scale,
                          const Buffer<Wide>& memory) const {
    const MatrixView<Wide> to = memory.matrix(from.rows, from.cols);
    for (Index j = 0; j < from.cols; ++j)
      for (Index i = 0; i < from.rows; ++i) to(i, j) = Wide(from(i, j)) * (scale.empty() ? 1 : scale[at(j)]);
    return to;
  }
  /// C ← A Bᴴ.
  static void multiply_adjoint(MatrixView<const Wide> A, MatrixView<const Wide> B, MatrixView<Wide> C) {
    if (C.empty() || A.cols == 0) return;
    const auto size = [](Index n) { return static_cast<cblas::Int>(n); };
    trace_flops(product_flops<T>(C.rows, A.cols, C.cols));
    cblas::gemm(Op::none, Op::adjoint, size(C.rows), size(C.cols), size(A.cols), Wide(1), A.data,
                size(A.stride), B.data, size(B.stride), Wide(0), C.data, size(C.stride));
  }
  static void mirror(MatrixView<Wide> K, Range rows, Range cols) {
    if (rows == cols) return;
    for (Index j = cols.begin; j < cols.end(); ++j)
      for (Index i = rows.begin; i < rows.end(); ++i) K(j, i) = conjugate(K(i, j));
  }

  Communicator& comm_;
  const FoldRows<T>& rows_;
  Buffer<Wide> K_, theirs_, mine_;
};

}  // namespace gridlops
