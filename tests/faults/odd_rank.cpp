// SPDX-License-Identifier: BSD-3-Clause
// All ranks make the same calls, but for a fault of one (GRIDLOPS_FAULT, see docs/faults.md): an argument
// that differs, or an exception. fault_matrix.py runs it.
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

#include "gridlops/backend.hpp"
#include "gridlops/local_operator.hpp"
#include "gridlops/matrix_mult.hpp"
#include "gridlops/mpi.hpp"
#include "gridlops/redistribute.hpp"
#include "gridlops/solver.hpp"
#include "support/planned_fault.hpp"

using namespace gridlops;

namespace {

class Faults {
 public:
  explicit Faults(int rank) : rank_(rank) {}

  void may_throw(const char* operation) {
    if (planned_.kind == "throw" && planned_.befalls(rank_, operation))
      throw std::runtime_error("the flux is negative");
  }

  /// The argument of this name: the usual one, or the other on the rank that is to differ.
  template <class T>
  T argument(const char* name, T usual, T other) {
    return planned_.kind == "differ" && planned_.befalls(rank_, name) ? other : usual;
  }

 private:
  int rank_;
  PlannedFault planned_ = PlannedFault::from_environment();
};

int compute(Communicator& world) {
  Faults faults(world.rank());
  const auto grid =
      std::make_shared<const ProcessGrid>(world, near_square(world.size()), make_host_backend());
  DistMatrix<double> matrix(grid, matrix_layout(Algorithm::summa, *grid, 12, 9));
  matrix.fill([](Index i, Index j) { return static_cast<double>(i - j); });
  const OperatorPtr<double> A = matrix_mult(Algorithm::summa, std::move(matrix));
  DistMatrix<double> X(grid, A->domain().layout(3)), wide(grid, A->domain().layout(4));
  DistMatrix<double> Y(grid, A->range().layout(3));
  X.fill([](Index i, Index j) { return static_cast<double>(i + j); });
  wide.set_zero();
  A->apply(faults.argument("alpha", 1.0, 2.0),
           faults.argument("columns", std::cref(X), std::cref(wide)).get(), 0, Y);
  gather(X, faults.argument("root", 0, 1));

  SolveOptions options;
  options.max_iterations = faults.argument<Index>("iterations", 2, 3);
  options.tolerance = faults.argument("tolerance", 1e-8, 1e-6);
  options.damp = faults.argument("damp", 0.0, 0.1);
  faults.argument("solver", &cgls<double>, &lsqr<double>)(*A, Y, X, options);

  const LocalProduct<double> negate = [&](MatrixView<const double> in, MatrixView<double> out) {
    faults.may_throw("function");
    for (Index j = 0; j < in.cols; ++j)
      for (Index i = 0; i < in.rows; ++i) out.data[i + j * out.stride] = -in.data[i + j * in.stride];
  };
  const OperatorPtr<double> own = local_operator<double>(A->range(), A->range(), negate, negate);
  DistMatrix<double> Z(grid, A->range().layout(3));
  for (int k = 0; k < 100; ++k) {
    faults.may_throw("product");
    A->apply(1, X, 0, Y);
    own->apply(1, Y, 0, Z);
  }
  std::printf("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] { return compute(session.world()); });
}
