// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_models.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "local/products/lapack.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/factor/triangles.hpp"
#include "solve/ridge/views.hpp"

namespace gridlops {

namespace {

/// Sums of each column of A over the rows of each fold, the same on all ranks.
template <Scalar T>
class FoldSums {
  using Wide = Accumulator<T>;

 public:
  /// Collective. Throws OutOfMemory on all ranks.
  FoldSums(Communicator& comm, const FoldRows<T>& rows, bool with_squares) : rows_(rows) {
    attempt(comm, [&] {
      sums_.assign(at(rows.folds() * rows.cols()), Wide(0));
      if (with_squares) squares_.assign(sums_.size(), 0.0);
    });
    for (Index f = 0; f < rows.folds(); ++f) {
      const MatrixView<const T> mine = rows.mine(f);
      for (Index j = 0; j < mine.cols; ++j) {
        for (Index i = 0; i < mine.rows; ++i) sums_[at(f * rows.cols() + j)] += Wide(mine(i, j));
        for (Index i = 0; with_squares && i < mine.rows; ++i)
          squares_[at(f * rows.cols() + j)] += std::norm(Wide(mine(i, j)));
      }
    }
    comm.all_reduce(sums_, ReduceOp::sum);
    comm.all_reduce(squares_, ReduceOp::sum);
  }

  /// Sets trained, mean and scale.
  void describe(RidgeModel<T>& model, const ModelOptions& options) const {
    const Index n = rows_.cols();
    model.trained = rows_.rows() - (model.fold == RidgeModel<T>::all ? 0 : rows_.fold(model.fold).size);
    model.mean.assign(at(n), Wide(0));
    model.scale.assign(at(n), 1.0);
    const double count = static_cast<double>(std::max<Index>(model.trained, 1));
    for (Index j = 0; j < n; ++j) {
      const Wide mean = of_others(sums_, model.fold, j) / count;
      if (options.standardized) {
        const double variance = of_others(squares_, model.fold, j) / count - std::norm(mean);
        if (variance > rounding_of_variance(mean, j))
          model.scale[at(j)] = std::ldexp(1 / std::sqrt(variance), rows_.power());
      }
      if (options.centred) model.mean[at(j)] = mean;
    }
  }

 private:
  template <class Number>
  Number of_others(const std::vector<Number>& of_folds, Index fold, Index j) const {
    Number sum(0);
    for (Index g = 0; g < rows_.folds(); ++g)
      if (g != fold) sum += of_folds[at(g * rows_.cols() + j)];
    return sum;
  }
  /// The variance of a constant column is no more than this.
  double rounding_of_variance(Wide mean, Index j) const {
    constexpr double of_sums = 1e-13, of_reference = 100 * std::numeric_limits<double>::epsilon();
    const double reference = std::ldexp(std::abs(rows_.reference()[at(j)]), rows_.power());
    return of_sums * std::norm(mean) + of_reference * reference * of_reference * reference;
  }

  const FoldRows<T>& rows_;
  std::vector<Wide> sums_;
  std::vector<double> squares_;
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

  /// Collective.
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
      for (Index i = 0; i < from.rows; ++i) to(i, j) = Wide(from(i, j)) * scale[at(j)];
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

/// Decomposes one training set on one rank.
template <Scalar T>
class ModelMaker {
  using Wide = Accumulator<T>;

 public:
  ModelMaker(const std::shared_ptr<Backend>& backend, const FoldRows<T>& rows, const ModelOptions& options)
      : backend_(backend), rows_(rows), options_(options) {}

  /// G: the upper triangle of Aᴴ A of the training rows, which is overwritten. tested: the rows to predict.
  void of_models(RidgeModel<T>& model, MatrixView<Wide> G, MatrixView<const T> tested) {
    const Index n = G.cols;
    const double count = static_cast<double>(model.trained);
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i <= j; ++i)
        G(i, j) = model.scale[at(i)] * model.scale[at(j)] *
                  (G(i, j) - count * conjugate(model.mean[at(i)]) * model.mean[at(j)]);
    decompose(model, G);
    for (Index k = 0; k < n; ++k)
      for (Index i = 0; i < n; ++i) G(i, k) *= model.scale[at(i)];
    std::copy_n(G.data, n * n, model.basis.data());
    if (tested.empty()) return;
    Buffer<Wide> centred(backend_, tested.size()), Z(backend_, tested.rows * n);
    const MatrixView<Wide> rows = centred.matrix(tested.rows, n);
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < tested.rows; ++i) rows(i, j) = Wide(tested(i, j)) - model.mean[at(j)];
    multiply<Wide>(Op::none, Wide(1), rows, G, Wide(0), Z.matrix(tested.rows, n));
    if (!options_.alphas.empty() && options_.by_rows)
      set_leverage(model, Z.matrix(tested.rows, n), [](double, double weight) { return weight; });
    keep_predictions(model, Z.matrix(tested.rows, n));
  }

  /// K: (A S)(A S)ᴴ of all rows.
  void of_data(RidgeModel<T>& model, MatrixView<const Wide> K) {
    const Index m = K.rows, t = model.trained;
    const Range left_out = model.fold == RidgeModel<T>::all ? Range{m, 0} : model.tested;
    std::vector<Index> places;
    for (Index i = 0; i < m; ++i)
      if (i < left_out.begin || i >= left_out.end()) places.push_back(i);
    // The product of each row with the mean of the training rows.
    std::vector<Wide> with_mean(at(m), Wide(0));
    Wide of_means(0);
    if (options_.centred) {
      for (const Index j : places)
        for (Index i = 0; i < m; ++i) with_mean[at(i)] += K(i, j) / static_cast<double>(t);
      for (const Index j : places) of_means += with_mean[at(j)] / static_cast<double>(t);
    }
    const auto centred = [&](Index i, Index j) {
      return K(i, j) - with_mean[at(i)] - conjugate(with_mean[at(j)]) + of_means;
    };
    const MatrixView<Wide> V = model.basis.matrix(t, t);
    for (Index j = 0; j < t; ++j)
      for (Index i = 0; i < t; ++i) V(i, j) = centred(places[at(i)], places[at(j)]);
    decompose(model, V);
    const Range tested = model.tested;
    if (tested.size == 0 || t == 0) return;
    Buffer<Wide> products(backend_, tested.size * t), Z(backend_, tested.size * t);
    for (Index j = 0; j < t; ++j)
      for (Index i = 0; i < tested.size; ++i)
        products.data()[i + j * tested.size] = centred(tested.begin + i, places[at(j)]);
    multiply<Wide>(Op::none, Wide(1), products.matrix(tested.size, t), V, Wide(0), Z.matrix(tested.size, t));
    if (options_.by_rows)
      set_leverage(model, Z.matrix(tested.size, t),
                   [](double value, double weight) { return value > 0 ? weight / value : 0; });
    keep_predictions(model, Z.matrix(tested.size, t));
  }

 private:
  void decompose(RidgeModel<T>& model, MatrixView<Wide> G) const {
    const TraceRegion region("eigenvectors");
    model.values.assign(at(G.cols), 0.0);
    if (G.cols == 0) return;
    require<InputError>(lapack::eigenvectors(G, model.values.data()), "the eigenvalues of a matrix of ",
                        G.cols, " x ", G.cols, " products of A did not converge");
    for (double& value : model.values) value = std::max(value, 0.0);
  }
  /// Σ |z|² w over the components of each tested row, for each damping; and 1/m of the mean.
  template <class Weight>
  void set_leverage(RidgeModel<T>& model, MatrixView<const Wide> Z, const Weight& weight) const {
    const Index dampings = std::ssize(options_.alphas);
    set_least(model);
    for (Index d = 0; d < dampings; ++d) {
      double* const of_rows = &model.leverage[at(d * Z.rows)];
      std::fill_n(of_rows, Z.rows, options_.centred ? 1 / static_cast<double>(model.trained) : 0.0);
      for (Index k = 0; k < Z.cols; ++k) {
        const double w = weight(model.values[at(k)], model.weight(k, options_.alphas[at(d)]));
        for (Index i = 0; i < Z.rows; ++i) of_rows[i] += w * std::norm(Z(i, k));
      }
    }
  }
  /// Z becomes R, or Q and R.
  void keep_predictions(RidgeModel<T>& model, MatrixView<Wide> Z) const {
    if (!model.is_rotated) return convert<Wide, T>(Z, model.R.matrix(Z.rows, Z.cols));
    const TraceRegion region("rotation of a fold");
    Buffer<Wide> R(backend_, model.rows_of_R * Z.cols);
    lapack::orthonormalise(Z, R.matrix(model.rows_of_R, Z.cols));
    convert<Wide, T>(R.matrix(model.rows_of_R, Z.cols), model.R.matrix(model.rows_of_R, Z.cols));
    convert<Wide, T>(Z.col_block({0, model.rows_of_R}), model.Q.matrix(Z.rows, model.rows_of_R));
    for (Index k = 0; k < model.rows_of_R; ++k) {
      Wide sum(0);
      for (Index i = 0; i < Z.rows; ++i) sum += conjugate(Z(i, k));
      model.ones[at(k)] = T(sum);
    }
  }

 public:
  void set_least(RidgeModel<T>& model) const {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double largest = model.values.empty() ? 0 : model.values.back();
    model.least = static_cast<double>(std::max(rows_.rows(), rows_.cols())) * epsilon * largest;
  }

 private:
  const std::shared_ptr<Backend>& backend_;
  const FoldRows<T>& rows_;
  const ModelOptions& options_;
};

/// Takes the memory of a model whose training set is known.
template <Scalar T>
void allocate(RidgeModel<T>& model, const std::shared_ptr<Backend>& backend, const FoldRows<T>& rows,
              const ModelOptions& options) {
  const bool of_data = rows.rows() < rows.cols();
  const Index size = of_data ? model.trained : rows.cols(), tested = model.tested.size;
  require<UsageError>(size <= most_eigenvectors, "a ridge of ", rows.rows(), " x ", rows.cols(),
                      " takes the eigenvectors of ", size, " x ", size,
                      " products; they are computed of at most ", most_eigenvectors);
  model.values.assign(at(size), 0.0);
  model.basis = Buffer<Accumulator<T>>(backend, size * size);
  model.is_rotated = model.fold != RidgeModel<T>::all || !options.by_rows;
  model.rows_of_R = model.is_rotated ? std::min(tested, size) : tested;
  model.R = Buffer<T>(backend, model.rows_of_R * size);
  if (model.is_rotated) {
    model.Q = Buffer<T>(backend, tested * model.rows_of_R);
    model.ones.assign(at(model.rows_of_R), T(1));
  } else {
    model.leverage.assign(at(tested * std::ssize(options.alphas)), 0.0);
  }
}

template <Scalar T>
void send(Communicator& comm, RidgeModel<T>& model, int root) {
  const TraceRegion region("models of folds");
  comm.broadcast(model.values, root);
  comm.broadcast(model.basis.span(), root);
  comm.broadcast(model.R.span(), root);
  comm.broadcast(model.Q.span(), root);
  comm.broadcast(model.ones, root);
  comm.broadcast(model.leverage, root);
}

/// Whether components in T are accurate enough: rounding of Aᴴb by ε‖A‖‖b‖ changes predictions by up to
/// ε‖A‖/(2D) of the data.
template <Scalar T>
bool may_be_narrow(const std::vector<RidgeModel<T>>& models, const ModelOptions& options, bool of_data) {
  if (of_data) return true;
  constexpr double most = 1e-5;
  const double least = *std::min_element(options.alphas.begin(), options.alphas.end());
  for (const RidgeModel<T>& model : models) {
    const double largest = model.values.empty() ? 0 : model.values.back();
    if (!(std::sqrt(largest) * static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) <=
          2 * most * std::sqrt(least)))
      return false;
  }
  return true;
}

}  // namespace

template <Scalar T>
std::vector<RidgeModel<T>> make_models(Communicator& comm, const std::shared_ptr<Backend>& backend,
                                       const FoldRows<T>& rows, const std::vector<Index>& folds,
                                       const ModelOptions& options) {
  using Wide = Accumulator<T>;
  const bool of_data = rows.rows() < rows.cols();
  const Index n = rows.cols(), ranks = comm.size(), count = std::ssize(folds);
  const FoldSums<T> sums(comm, rows, options.standardized);
  std::optional<FoldGrams<T>> grams;
  std::optional<DataGram<T>> gram;
  if (of_data) {
    gram.emplace(comm, backend, rows);
  } else {
    grams.emplace(comm, backend, rows);
  }
  std::vector<RidgeModel<T>> models(at(count));
  ModelMaker<T> maker(backend, rows, options);
  Buffer<Wide> G;
  Buffer<T> tested, message, messages;
  for (Index begin = 0; begin < count; begin += ranks) {
    // Each rank makes one of these.
    const Index end = std::min(begin + ranks, count);
    const Index mine = begin + comm.rank();
    attempt(comm, [&] {
      for (Index k = begin; k < end; ++k) {
        RidgeModel<T>& model = models[at(k)];
        model.fold = folds[at(k)];
        const bool is_of_all = model.fold == RidgeModel<T>::all;
        if (!is_of_all || options.predicts)
          model.tested = is_of_all ? Range{0, rows.rows()} : rows.fold(model.fold);
        sums.describe(model, options);
        allocate(model, backend, rows, options);
        if (of_data) continue;
        // What comes to the rank that makes it.
        for (Index f = 0; f < rows.folds(); ++f) message.reserve(backend, rows.my_places(f).size * n);
        if (k != mine) continue;
        G.reserve(backend, n * n);
        tested.reserve(backend, model.tested.size * n);
        messages.reserve(backend, model.tested.size * n);
      }
    });
    for (Index k = begin; k < end; ++k) {
      RidgeModel<T>& model = models[at(k)];
      const auto root = static_cast<int>(k - begin);
      if (of_data) {
        if (k == 0 || options.standardized) gram->compute(model.scale);
        // Before the next one takes its place.
        if (options.standardized)
          attempt(comm, [&] {
            if (k == mine) maker.of_data(model, gram->view());
          });
        continue;
      }
      grams->sum_of_others(model.fold, root, G.matrix(n, n));
      if (model.tested.size == 0) continue;
      MatrixView<T> whole = tested.matrix(k == mine ? model.tested.size : 0, n);
      const bool is_of_all = model.fold == RidgeModel<T>::all;
      for (Index f = is_of_all ? 0 : model.fold; f < (is_of_all ? rows.folds() : model.fold + 1); ++f)
        rows.gather(f, root,
                    k == mine ? whole.row_block({rows.fold(f).begin - model.tested.begin, rows.fold(f).size})
                              : MatrixView<T>(),
                    message.data(), messages.data());
    }
    if (!of_data || !options.standardized)
      attempt(comm, [&] {
        if (mine >= end) return;
        const AtWork at_work;
        RidgeModel<T>& model = models[at(mine)];
        if (of_data) {
          maker.of_data(model, gram->view());
        } else {
          maker.of_models(model, G.matrix(n, n), tested.matrix(model.tested.size, n));
        }
      });
    for (Index k = begin; k < end; ++k) {
      send(comm, models[at(k)], static_cast<int>(k - begin));
      maker.set_least(models[at(k)]);
    }
  }
  if constexpr (!std::is_same_v<T, Wide>)
    if (may_be_narrow(models, options, of_data))
      for (RidgeModel<T>& model : models) {
        attempt(comm, [&] { model.narrow_basis = Buffer<T>(backend, model.basis.size()); });
        convert<Wide, T>(model.basis.matrix(model.basis.size(), 1),
                         model.narrow_basis.matrix(model.basis.size(), 1));
        model.basis = Buffer<Wide>();
      }
  return models;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template std::vector<RidgeModel<T>> make_models(Communicator&, const std::shared_ptr<Backend>&, \
                                                  const FoldRows<T>&, const std::vector<Index>&,  \
                                                  const ModelOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
