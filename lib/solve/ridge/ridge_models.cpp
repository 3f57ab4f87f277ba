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
#include "base/square_sum.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "local/blas/lapack.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/ridge/fold_sums.hpp"
#include "solve/ridge/views.hpp"

namespace gridlops {

namespace {

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
    for (Index j = 0; j < n; ++j)
      model.uncentred = std::max(model.uncentred, std::norm(model.scale[at(j)]) * std::abs(G(j, j)));
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i <= j; ++i)
        G(i, j) = model.scale[at(i)] * model.scale[at(j)] *
                  (G(i, j) - model.weight * conjugate(model.mean[at(i)]) * model.mean[at(j)]);
    decompose(model, G);
    for (Index k = 0; k < n; ++k)
      for (Index i = 0; i < n; ++i) G(i, k) *= model.scale[at(i)];
    std::copy_n(G.data, n * n, model.basis.data());
    if (tested.rows == 0) return;
    Buffer<Wide> centred(backend_, tested.size()), Z(backend_, tested.rows * n);
    const MatrixView<Wide> rows = centred.matrix(tested.rows, n);
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < tested.rows; ++i)
        rows(i, j) = Wide(tested(i, j)) - root(model.tested.begin + i) * model.mean[at(j)];
    multiply<Wide>(Op::none, Wide(1), rows, G, Wide(0), Z.matrix(tested.rows, n));
    if (!model.is_rotated) {
      set_least(model);
      set_leverage(model, Z.matrix(tested.rows, n), options_.centred ? 1 / model.weight : 0.0,
                   [&](Index k, double alpha) { return model.inverse(k, alpha); });
    }
    keep_predictions(model, Z.matrix(tested.rows, n));
  }

  /// K: (A S)(A S)ᴴ of all rows.
  void of_data(RidgeModel<T>& model, MatrixView<const Wide> K) {
    const Index m = K.rows, t = model.trained;
    const Range left_out = model.fold == RidgeModel<T>::all ? Range{m, 0} : model.tested;
    std::vector<Index> places;
    for (Index i = 0; i < m; ++i)
      if (i < left_out.begin || i >= left_out.end()) places.push_back(i);
    for (const Index i : places) model.uncentred = std::max(model.uncentred, std::abs(K(i, i)));
    // The product of each row with the mean of the training rows.
    std::vector<Wide> with_mean(at(m), Wide(0));
    Wide of_means(0);
    if (options_.centred) {
      for (const Index j : places)
        for (Index i = 0; i < m; ++i) with_mean[at(i)] += K(i, j) * (root(j) / model.weight);
      for (const Index j : places) of_means += with_mean[at(j)] * (root(j) / model.weight);
    }
    const auto centred = [&](Index i, Index j) {
      return K(i, j) - root(j) * with_mean[at(i)] - root(i) * conjugate(with_mean[at(j)]) +
             root(i) * root(j) * of_means;
    };
    const MatrixView<Wide> G = model.basis.matrix(t, t);
    for (Index j = 0; j < t; ++j)
      for (Index i = 0; i < t; ++i) G(i, j) = centred(places[at(i)], places[at(j)]);
    decompose_without_mean(model, places, G);
    const MatrixView<const Wide> V = model.template basis_in<Wide>();
    const Range tested = model.tested;
    if (tested.size == 0) return;
    if (model.fold == RidgeModel<T>::all) {
      set_least(model);
      return set_leverage(model, V, 0.0,
                          [&](Index k, double alpha) { return model.residual_weight(k, alpha); });
    }
    Buffer<Wide> products(backend_, tested.size * t), Z(backend_, tested.size * V.cols);
    for (Index j = 0; j < t; ++j)
      for (Index i = 0; i < tested.size; ++i)
        products.data()[i + j * tested.size] = centred(tested.begin + i, places[at(j)]);
    multiply<Wide>(Op::none, Wide(1), products.matrix(tested.size, t), V, Wide(0),
                   Z.matrix(tested.size, V.cols));
    keep_predictions(model, Z.matrix(tested.size, V.cols));
  }

 private:
  double root(Index place) const { return rows_.roots()[at(place)]; }
  void decompose(RidgeModel<T>& model, MatrixView<Wide> G) const {
    const TraceRegion region("eigenvectors");
    if (G.cols == 0) return;
    require<InputError>(lapack::eigenvectors(G, model.values.data()), "the eigenvalues of a matrix of ",
                        G.cols, " x ", G.cols, " products of A did not converge");
    for (double& value : model.values) value = std::max(value, 0.0);
  }
  /// The same of data. If they are centred, the vector of the roots of weights gets a λ that no other has,
  /// and is left out.
  void decompose_without_mean(RidgeModel<T>& model, const std::vector<Index>& places,
                              MatrixView<Wide> G) const {
    if (!options_.centred) return decompose(model, G);
    SquareSum sum;
    for (Index j = 0; j < G.cols; ++j)
      for (Index i = 0; i < G.rows; ++i) sum.add(std::abs(G(i, j)));
    // Larger than what rounding left when the means were subtracted.
    const double size = std::max(sum.root(), model.uncentred), shift = size > 0 ? size : 1;
    for (Index j = 0; j < G.cols; ++j)
      for (Index i = 0; i < G.rows; ++i)
        G(i, j) -= shift * root(places[at(i)]) * root(places[at(j)]) / model.weight;
    model.values.push_back(0);
    decompose(model, G);
    model.values.erase(model.values.begin());
    if (size == 0) std::fill(model.values.begin(), model.values.end(), 0.0);  // rounding of the shift
    std::copy_n(G.column(1), (G.cols - 1) * G.rows, G.data);
  }
  /// start times the weight of each row + Σ |z|² w over the components of each tested row, for each damping,
  /// if they are wanted.
  template <class Weight>
  void set_leverage(RidgeModel<T>& model, MatrixView<const Wide> Z, double start,
                    const Weight& weight) const {
    if (!options_.by_rows) return;
    const Index dampings = std::ssize(options_.alphas);
    for (Index d = 0; d < dampings; ++d) {
      double* const of_rows = &model.leverage[at(d * Z.rows)];
      for (Index i = 0; i < Z.rows; ++i)
        of_rows[i] = start * root(model.tested.begin + i) * root(model.tested.begin + i);
      for (Index k = 0; k < Z.cols; ++k) {
        const double w = weight(k, options_.alphas[at(d)]);
        for (Index i = 0; i < Z.rows; ++i) of_rows[i] += w * std::norm(Z(i, k));
      }
    }
  }
  /// Z becomes R, or Q and R.
  void keep_predictions(RidgeModel<T>& model, MatrixView<Wide> Z) const {
    if (!model.is_rotated) return convert<Wide, T>(Z, model.R.matrix(Z.rows, Z.cols));
    if (model.rows_of_R == 0) return;
    const TraceRegion region("rotation of a fold");
    Buffer<Wide> R(backend_, model.rows_of_R * Z.cols);
    lapack::orthonormalise(Z, R.matrix(model.rows_of_R, Z.cols));
    convert<Wide, T>(R.matrix(model.rows_of_R, Z.cols), model.R.matrix(model.rows_of_R, Z.cols));
    convert<Wide, T>(Z.col_block({0, model.rows_of_R}), model.Q.matrix(Z.rows, model.rows_of_R));
    for (Index k = 0; k < model.rows_of_R; ++k) {
      Wide sum(0);
      for (Index i = 0; i < Z.rows; ++i) sum += conjugate(Z(i, k)) * root(model.tested.begin + i);
      model.ones[at(k)] = T(sum);
    }
  }

 public:
  void set_least(RidgeModel<T>& model) const {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double largest = std::max(model.values.empty() ? 0 : model.values.back(), model.uncentred);
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
  const bool of_data = rows.of_data(), is_of_all = model.fold == RidgeModel<T>::all;
  const Index order = model.rows_of_basis = of_data ? model.trained : rows.cols();
  const Index size = order - (of_data && options.centred ? 1 : 0), tested = model.tested.size;
  model.values.reserve(at(order));
  model.values.assign(at(size), 0.0);
  model.basis = Buffer<Accumulator<T>>(backend, order * order);
  if (is_of_all && options.by_rows) model.leverage.assign(at(tested * std::ssize(options.alphas)), 0.0);
  if (is_of_all && of_data) return;
  model.is_rotated = !is_of_all || !options.by_rows;
  model.rows_of_R = model.is_rotated ? std::min(tested, size) : tested;
  model.R = Buffer<T>(backend, model.rows_of_R * size);
  if (model.is_rotated) {
    model.Q = Buffer<T>(backend, tested * model.rows_of_R);
    model.ones.assign(at(model.rows_of_R), T(1));
  }
}

/// Whether components in T are accurate enough: rounding of Aᴴb by ε‖A‖‖b‖ changes predictions by up to
/// ε‖A‖/(2D) of the data, and so does that of Vᴴb. Residuals that are divided by small numbers are not.
template <Scalar T>
bool may_be_narrow(const std::vector<RidgeModel<T>>& models, const ModelOptions& options, bool of_data) {
  if (of_data && options.predicts) return false;
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

/// Makes as many models as there are ranks, each on one of them.
template <Scalar T>
class ModelsOfRanks {
  using Wide = Accumulator<T>;

 public:
  /// Collective. Throws OutOfMemory on all ranks.
  ModelsOfRanks(Communicator& comm, const std::shared_ptr<Backend>& backend, FoldRows<T>& rows,
                const ModelOptions& options)
      : comm_(comm),
        backend_(backend),
        rows_(rows),
        options_(options),
        sums_(comm, rows, options.standardized),
        maker_(backend, rows, options) {
    if (rows.of_data()) {
      gram_.emplace(comm, backend, rows);
      if (!options.standardized) gram_->compute(std::vector<double>());
    } else {
      grams_.emplace(comm, backend, rows);
    }
  }

  /// Makes the models of these folds (collective).
  void make(std::span<RidgeModel<T>> models) {
    attempt(comm_, [&] {
      for (RidgeModel<T>& model : models) prepare(model, is_mine(models, model));
    });
    // Where features are standardised, each training set has its A Aᴴ, which the next one's takes the place
    // of.
    const bool one_by_one = rows_.of_data() && options_.standardized;
    for (RidgeModel<T>& model : models) {
      if (!rows_.of_data()) collect(model, root_of(models, model));
      if (!one_by_one) continue;
      gram_->compute(model.scale);
      attempt(comm_, [&] {
        if (is_mine(models, model)) maker_.of_data(model, gram_->view());
      });
    }
    if (!one_by_one)
      attempt(comm_, [&] {
        for (RidgeModel<T>& model : models)
          if (is_mine(models, model)) make_mine(model);
      });
    for (RidgeModel<T>& model : models) send(model, root_of(models, model));
  }

 private:
  static int root_of(std::span<RidgeModel<T>> models, const RidgeModel<T>& model) {
    return static_cast<int>(&model - models.data());
  }
  bool is_mine(std::span<RidgeModel<T>> models, const RidgeModel<T>& model) const {
    return root_of(models, model) == comm_.rank();
  }

  void prepare(RidgeModel<T>& model, bool is_mine) {
    const bool is_of_all = model.fold == RidgeModel<T>::all;
    const Index n = rows_.cols();
    if (!is_of_all || options_.predicts)
      model.tested = is_of_all ? Range{0, rows_.rows()} : rows_.fold(model.fold);
    sums_.describe(model, options_);
    allocate(model, backend_, rows_, options_);
    if (rows_.of_data()) return;
    for (Index f = 0; f < rows_.folds(); ++f) message_.reserve(backend_, rows_.my_places(f).size * n);
    if (!is_mine) return;
    G_.reserve(backend_, n * n);
    tested_.reserve(backend_, model.tested.size * n);
    messages_.reserve(backend_, model.tested.size * n);
  }
  /// Brings AᴴA and the tested rows to the rank that makes this model.
  void collect(const RidgeModel<T>& model, int root) {
    const Index n = rows_.cols();
    const bool is_root = root == comm_.rank(), is_of_all = model.fold == RidgeModel<T>::all;
    grams_->sum_of_others(model.fold, root, G_.matrix(n, n));
    if (model.tested.size == 0) return;
    const MatrixView<T> whole = tested_.matrix(is_root ? model.tested.size : 0, n);
    for (Index f = is_of_all ? 0 : model.fold; f < (is_of_all ? rows_.folds() : model.fold + 1); ++f)
      rows_.gather(f, root,
                   is_root ? whole.row_block({rows_.fold(f).begin - model.tested.begin, rows_.fold(f).size})
                           : MatrixView<T>(),
                   message_.data(), messages_.data());
  }
  void make_mine(RidgeModel<T>& model) {
    const AtWork at_work;
    const Index n = rows_.cols();
    if (rows_.of_data()) return maker_.of_data(model, gram_->view());
    maker_.of_models(model, G_.matrix(n, n), tested_.matrix(model.tested.size, n));
  }
  void send(RidgeModel<T>& model, int root) {
    const TraceRegion region("models of folds");
    comm_.broadcast(model.values, root);
    comm_.broadcast(std::span(&model.uncentred, 1), root);
    comm_.broadcast(model.basis.span(), root);
    comm_.broadcast(model.R.span(), root);
    comm_.broadcast(model.Q.span(), root);
    comm_.broadcast(model.ones, root);
    comm_.broadcast(model.leverage, root);
    maker_.set_least(model);
  }

  Communicator& comm_;
  const std::shared_ptr<Backend>& backend_;
  FoldRows<T>& rows_;
  const ModelOptions& options_;
  const FoldSums<T> sums_;
  std::optional<FoldGrams<T>> grams_;
  std::optional<DataGram<T>> gram_;
  ModelMaker<T> maker_;
  Buffer<Wide> G_;
  Buffer<T> tested_, message_, messages_;
};

}  // namespace

template <Scalar T>
std::vector<RidgeModel<T>> make_models(Communicator& comm, const std::shared_ptr<Backend>& backend,
                                       FoldRows<T>& rows, const std::vector<Index>& folds,
                                       const ModelOptions& options) {
  using Wide = Accumulator<T>;
  ModelsOfRanks<T> makers(comm, backend, rows, options);
  std::vector<RidgeModel<T>> models;
  attempt(comm, [&] {
    models.resize(folds.size());
    for (std::size_t k = 0; k < folds.size(); ++k) models[k].fold = folds[k];
  });
  const auto ranks = static_cast<std::size_t>(comm.size());
  for (std::size_t first = 0; first < models.size(); first += ranks)
    makers.make(std::span(models).subspan(first, std::min(ranks, models.size() - first)));
  if constexpr (!std::is_same_v<T, Wide>)
    if (may_be_narrow(models, options, rows.of_data()))
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
                                                  FoldRows<T>&, const std::vector<Index>&,        \
                                                  const ModelOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
