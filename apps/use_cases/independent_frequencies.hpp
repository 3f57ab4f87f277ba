// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "use_cases/mdd/kernel_operator.hpp"
#include "use_cases/pair_weights.hpp"

namespace gridlops::program {

/// Each frequency is a separate problem, which its rank solves alone, for all sources: column f · sources + s
/// of the result is source s at frequency f.
template <Scalar T>
class IndependentFrequencies {
 public:
  /// G and the weights of pairs must outlive this.
  IndependentFrequencies(const MddArguments& arguments, const Space& kernel, KernelOperator<T>& G,
                         const Table& weights)
      : arguments_(arguments),
        weights_(weights),
        own_(kernel.local_box()[0]),
        slices_(G.entries.local()),
        operators_(G.alone),
        series_(G.series),
        series_memory_(G.series_memory),
        comm_(kernel.grid->comm()) {
    alone_comm_ = comm_.split(comm_.rank(), 0);
    alone_ = std::make_shared<const ProcessGrid>(*alone_comm_, GridShape{1, 1}, kernel.grid->backend());
  }

  /// The memory that the kernel takes on this rank, with the solves of its frequencies one after the other.
  SolveBytes bytes() const {
    const auto of = [&](const OperatorPtr<T>& A) {
      return solve_weighted_bytes(arguments_.common.solver, A, weights_, arguments_.sources);
    };
    const Partition shots = Partition::with_sizes({arguments_.sources});
    SolveBytes bytes;
    KeptBytes kept;
    for (const OperatorPtr<T>& A : operators_) {
      const SolveBytes one = of(A);
      A->add_kept_bytes(kept, shots);
      bytes.vectors = std::max(bytes.vectors, one.vectors);
      bytes.products = std::max(bytes.products, one.products);
    }
    bytes.operators = kept.total();
    if (own_.size > 0 && operators_.empty()) {
      const Space kernel = slice_space();
      bytes = of(fredholm<T>(kernel, planned_matrix<T>(alone_, kernel.layout(1))));
    }
    bytes.operators += slices_.size() * static_cast<Index>(sizeof(T));
    return bytes;
  }

  SolveReport solve(const DistMatrix<T>& data, DistMatrix<T>& model, SolveOptions options) {
    options.observers.clear();
    if (!arguments_.common.tolerance) options.tolerance.reset();
    std::vector<SolveReport> mine;
    attempt(comm_, [&] {
      for (Index f = 0; f < own_.size; ++f) mine.push_back(solve_one(f, data, model, options));
    });
    SolveReport report = gather(mine);
    costs_ = sum_costs(mine, report.iterations);
    return report;
  }
  std::vector<std::vector<double>> take_costs() { return std::move(costs_); }

 private:
  Space slice_space() const { return array_space(alone_, {1, arguments_.nx, arguments_.ny}, 0); }

  OperatorPtr<T> kernel_of(Index f) const {
    if (series_) series_->start(series_memory_, {f, 1});
    if (!operators_.empty()) return operators_[static_cast<std::size_t>(f)];
    const Space kernel = slice_space();
    const Index size = kernel.dimension();
    DistMatrix<T> slice(alone_, kernel.layout(1));  // a copy, which the operator may store as it likes
    alone_->backend()->template kernels<T>().copy(slices_.row_block({f * size, size}), slice.local());
    return fredholm<T>(kernel, std::move(slice));
  }

  SolveReport solve_one(Index f, const DistMatrix<T>& data, DistMatrix<T>& model,
                        const SolveOptions& options) const {
    const Index nx = arguments_.nx, ny = arguments_.ny;
    const OperatorPtr<T> A = kernel_of(f);
    const std::shared_ptr<const ProcessGrid>& grid = A->range().grid;
    const ConstDistMatrix<T> B(grid, A->range().layout(data.cols()), data.local().row_block({f * ny, ny}));
    DistMatrix<T> X(grid, A->domain().layout(data.cols()), model.local().row_block({f * nx, nx}));
    return solve_weighted<T>(arguments_.common.solver, A, nullptr, weights_, B, X, options);
  }

  /// The columns of all ranks.
  SolveReport gather(const std::vector<SolveReport>& mine) const {
    // Whole reports, as doubles.
    using Sent = std::array<double, sizeof(ColumnReport) / sizeof(double)>;
    std::vector<double> sent;
    for (const SolveReport& one : mine) {
      for (const ColumnReport& column : one.columns) {
        const auto numbers = std::bit_cast<Sent>(column);
        sent.insert(sent.end(), numbers.begin(), numbers.end());
      }
    }
    std::vector<Index> counts(static_cast<std::size_t>(comm_.size()));
    const std::array<Index, 1> count{static_cast<Index>(sent.size())};
    comm_.all_gather(count, counts);
    std::vector<double> all(
        static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})));
    comm_.all_gather_v(sent, all, counts);
    SolveReport report;
    report.solver = name_of(arguments_.common.solver);
    for (auto next = all.begin(); next != all.end(); next += std::tuple_size_v<Sent>) {
      Sent numbers;
      std::copy_n(next, numbers.size(), numbers.begin());
      report.columns.push_back(std::bit_cast<ColumnReport>(numbers));
      report.iterations = std::max(report.iterations, report.columns.back().iterations);
    }
    return report;
  }

  /// Like costs_of() for one problem: norms over all frequencies, including those that have ended.
  std::vector<std::vector<double>> sum_costs(const std::vector<SolveReport>& mine, Index iterations) const {
    const auto sources = static_cast<std::size_t>(arguments_.sources);
    std::vector<double> squares(static_cast<std::size_t>(iterations + 1) * sources);
    for (const SolveReport& one : mine) {
      const std::vector<std::vector<double>> costs = costs_of(one);
      for (std::size_t k = 0; k * sources < squares.size(); ++k) {
        const std::vector<double>& norms = costs[std::min(k, costs.size() - 1)];
        for (std::size_t s = 0; s < sources; ++s)
          squares[k * sources + s] += std::pow(norms[norms.size() - sources + s], 2);
      }
    }
    comm_.all_reduce(squares, ReduceOp::sum);
    std::vector<std::vector<double>> costs;
    for (std::size_t k = 0; k * sources < squares.size(); ++k) {
      const std::span<const double> of_sources(squares.data() + k * sources, sources);
      costs.push_back({std::sqrt(std::accumulate(of_sources.begin(), of_sources.end(), 0.0))});
      if (sources > 1)
        for (const double square : of_sources) costs.back().push_back(std::sqrt(square));
    }
    return costs;
  }

  const MddArguments& arguments_;
  const Table& weights_;
  Range own_;
  MatrixView<T> slices_;
  const std::vector<OperatorPtr<T>>& operators_;
  std::shared_ptr<StreamedSeries<T>> series_;
  const Index& series_memory_;
  Communicator& comm_;
  std::unique_ptr<Communicator> alone_comm_;
  std::shared_ptr<const ProcessGrid> alone_;
  std::vector<std::vector<double>> costs_;
};

}  // namespace gridlops::program
