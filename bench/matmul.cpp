// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"
#include "product_check.hpp"
#include "results.hpp"

namespace gridlops::bench {

namespace {

/// A copy of this rank's block without gaps, in host memory.
template <Scalar T>
std::vector<T> on_host(const DistMatrix<T>& X) {
  const std::shared_ptr<Backend>& backend = X.grid()->backend();
  const MatrixView<const T> local = X.local();
  const Buffer<T> packed(backend, local.size());
  std::vector<T> values(static_cast<std::size_t>(local.size()));
  if (values.empty()) return values;
  backend->kernels<T>().copy(local, packed.matrix(local.rows, local.cols));
  backend->download(packed.data(), values.data(), local.size() * Index{sizeof(T)});
  return values;
}

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

  double error() const;

 private:
  const Case& what_;
  bool adjoint_;
  OperatorPtr<T> A_;
  DistMatrix<T> X_, Y_;
};

template <Scalar T>
double Product<T>::error() const {
  const auto indices = [](Range range) {
    std::vector<Index> all;
    for (Index i = range.begin; i < range.end(); ++i) all.push_back(i);
    return all;
  };
  const std::vector<T> local = on_host(Y_);
  return product_error<T>(
      what_, adjoint_,
      {MatrixView<const T>(local.data(), Y_.local_row_range().size, Y_.local_col_range().size),
       indices(Y_.local_row_range()), indices(Y_.local_col_range())});
}

template <Scalar T>
Result measure(const Case& what, int repetitions, LimitMeter& meter, bool adjoint) {
  Product<T> product(what, adjoint);
  Result result{.what = what, .adjoint = adjoint};
  result.work = product_work<T>(what.shape);
  product.apply();
  const Index before = what.grid->comm().traffic().bytes_sent;
  product.apply();
  result.bytes_sent = sum(*what.grid, what.grid->comm().traffic().bytes_sent - before);
  result.samples = samples<T>(*what.grid, meter, repetitions, [&product] { product.apply(); });
  result.error = product.error();
  return result;
}

}  // namespace

void matmul(Communicator& world, const MatmulArguments& arguments) {
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  warn_of_copies(world, arguments.cases);
  for_each_case(world, arguments.cases, [&](const Case& what) {
    for (const bool adjoint : directions(arguments)) {
      with_scalar_type(what.shape.type, [&]<Scalar T>() {
        writer.add(measure<T>(what, arguments.method.repetitions, meter, adjoint));
      });
    }
  });
  writer.close();
}

}  // namespace gridlops::bench
