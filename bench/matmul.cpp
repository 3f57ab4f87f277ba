// SPDX-License-Identifier: BSD-3-Clause
#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "bench/product_check.hpp"

namespace gridlops::bench {

namespace {

template <Scalar T>
class Product {
 public:
  Product(const Case& what, bool adjoint, OperatorPtr<T> A)
      : what_(what),
        adjoint_(adjoint),
        A_(std::move(A)),
        X_(random_input<T>(what, adjoint ? A_->range() : A_->domain())),
        Y_(allocate_matrix<T>(what.grid, (adjoint ? A_->domain() : A_->range()).layout(what.shape.nrhs))) {}

  void apply() {
    if (adjoint_) {
      A_->apply_adjoint(T(1), X_, T(0), Y_);
    } else {
      A_->apply(T(1), X_, T(0), Y_);
    }
    what_.grid->backend()->synchronize();
  }

  double error() const { return product_error<T>(what_, adjoint_, Y_); }

 private:
  const Case& what_;
  bool adjoint_;
  OperatorPtr<T> A_;
  DistMatrix<T> X_, Y_;
};

template <Scalar T>
Result measure(const Case& what, int repetitions, LimitMeter& meter, bool adjoint, bool from_high_plane,
               const OperatorPtr<T>& A) {
  Product<T> product(what, adjoint, from_high_plane ? high_plane(A) : A);
  Result result{.what = what, .adjoint = adjoint, .high_plane = from_high_plane};
  result.work = product_work<T>(what.shape);
  product.apply();
  const Index before = what.grid->comm().traffic().bytes_sent;
  product.apply();
  result.bytes_sent = sum(*what.grid, what.grid->comm().traffic().bytes_sent - before);
  result.samples = samples<T>(*what.grid, meter, repetitions, [&product] { product.apply(); });
  result.error = product.error();
  constexpr double rounding_to_high = 0x1p-21;
  result.allowed_error =
      allowed_product_error<T>(what.shape, adjoint) + (from_high_plane ? rounding_to_high : 0);
  return result;
}

}  // namespace

ExitStatus matmul(Communicator& world, const MatmulArguments& arguments) {
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  warn_of_copies(world, arguments.cases);
  for_each_case(world, arguments.cases, [&](const Case& what, LastProduct& last) {
    for (const bool adjoint : directions(arguments)) {
      with_scalar_type(what.shape.type, [&]<Scalar T>() {
        for (const bool high : {false, true})
          if (!high || (arguments.high_plane && what.storage == Storage::planes))
            writer.add(
                measure<T>(what, arguments.method.repetitions, meter, adjoint, high, last.of<T>(what)));
      });
    }
  });
  return writer.close();
}

}  // namespace gridlops::bench
