// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "benchmarks.hpp"
#include "clock.hpp"
#include "journal.hpp"
#include "operands.hpp"

namespace gridlops::bench {

namespace {

template <Scalar T>
class Product {
 public:
  Product(const Case& what, bool adjoint)
      : what_(what),
        adjoint_(adjoint),
        A_(random_product<T>(what)),
        X_(random_input<T>(what, adjoint ? A_->range() : A_->domain())),
        Y_(program::allocate_matrix<T>(what.grid,
                                       (adjoint ? A_->domain() : A_->range()).layout(what.shape.nrhs))) {}

  void apply() {
    if (adjoint_) {
      A_->apply_adjoint(T(1), X_, T(0), Y_);
    } else {
      A_->apply(T(1), X_, T(0), Y_);
    }
    what_.grid->backend()->synchronize();
  }

  /// Seconds of the slowest rank (collective over the grid).
  double timed() {
    what_.grid->comm().barrier();
    const double begin = now();
    apply();
    return maximum(*what_.grid, now() - begin);
  }

  double error() const;

 private:
  const Case& what_;
  bool adjoint_;
  OperatorPtr<T> A_;
  DistMatrix<T> X_, Y_;
};

/// ‖Y w − op(A) (X w)‖ / ‖op(A) (X w)‖ for a random w, with sums over all elements of A and X that this
/// rank's part of Y depends on, in double precision; the largest of any rank (collective over the grid).
template <Scalar T>
double Product<T>::error() const {
  using Sum = Accumulator<T>;
  const auto wide = [](T value) { return static_cast<Sum>(value); };
  const Range rows = Y_.local_row_range(), cols = Y_.local_col_range();
  const auto w = [](Index j) { return 0.5 + std::fmod(0.618 * static_cast<double>(j), 1.0); };
  std::vector<Sum> Xw(static_cast<std::size_t>(X_.rows()));
  for (Index k = 0; k < X_.rows(); ++k)
    for (Index j = cols.begin; j < cols.end(); ++j)
      Xw[static_cast<std::size_t>(k)] += wide(counter_random<T>(seed_of_input, k, j)) * w(j);
  double difference = 0, size = 0;
  for (Index i = 0; i < rows.size; ++i) {
    Sum found{}, expected{};
    for (Index j = 0; j < cols.size; ++j) found += wide(Y_.local()(i, j)) * w(cols.begin + j);
    for (Index k = 0; k < X_.rows(); ++k) {
      const T a = adjoint_ ? conjugate(counter_random<T>(seed_of_A, k, rows.begin + i))
                           : counter_random<T>(seed_of_A, rows.begin + i, k);
      expected += wide(a) * Xw[static_cast<std::size_t>(k)];
    }
    difference += std::norm(found - expected);
    size += std::norm(expected);
  }
  return maximum(*what_.grid, size > 0 ? std::sqrt(difference / size) : std::sqrt(difference));
}

template <Scalar T>
Result measure(const Case& what, int repetitions, LimitMeter& meter, bool adjoint) {
  Product<T> product(what, adjoint);
  Result result{.what = what, .adjoint = adjoint};
  const ProductShape& shape = what.shape;
  result.work = {
      product_flops<T>(shape.rows, shape.cols, shape.nrhs),
      static_cast<double>(sizeof(T)) * static_cast<double>(shape.rows) * static_cast<double>(shape.cols)};
  product.apply();
  meter.measure<T>(*what.grid);
  const Traffic& traffic = what.grid->comm().traffic();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const MachineLimits limits = meter.measure<T>(*what.grid);
    const Index sent = traffic.bytes_sent;
    product.apply();  // brings back to the caches what the limits have driven out
    result.bytes_sent = traffic.bytes_sent - sent;
    result.samples.push_back({product.timed(), limits});
  }
  result.bytes_sent = sum(*what.grid, result.bytes_sent);
  result.error = product.error();
  return result;
}

}  // namespace

void matmul(Communicator& world, const MatmulArguments& arguments) {
  Journal journal(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order);
  std::vector<bool> directions;
  if (!arguments.adjoint || arguments.both) directions.push_back(false);
  if (arguments.adjoint || arguments.both) directions.push_back(true);
  for_each_case(world, arguments.cases, [&](const Case& what) {
    for (const bool adjoint : directions) {
      with_scalar_type(what.shape.type, [&]<Scalar T>() {
        journal.add(measure<T>(what, arguments.method.repetitions, meter, adjoint));
      });
    }
  });
  journal.close();
}

}  // namespace gridlops::bench
