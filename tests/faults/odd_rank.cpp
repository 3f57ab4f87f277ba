// SPDX-License-Identifier: BSD-3-Clause
// All ranks make the same calls, but for a fault of one (GRIDLOPS_FAULT, see docs/faults.md): an argument
// that differs, or an exception. With an argument it has an operator with messages of its own: sum, long-sum,
// row-sum, own-sum, broadcast, barrier or ring, which are then operations that may throw. With a second one
// all ranks catch that. fault_matrix.py runs it.
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/comm/mpi.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"
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

/// An operator of the program's own, the identity, which may throw before messages of its own.
class OwnMessages final : public LinearOperator<double> {
 public:
  OwnMessages(const Space& space, std::string exchange, Faults& faults)
      : LinearOperator<double>(space, space), exchange_(std::move(exchange)), faults_(faults) {
    own_ = space.grid->comm().split(0, space.grid->comm().rank());
  }

 private:
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    faults_.may_throw(exchange_.c_str());
    const ProcessGrid& grid = *X.grid();
    std::vector<double> few(5, 1), many(20'000, 1), from(5);
    if (exchange_ == "sum") grid.comm().all_reduce(few, ReduceOp::sum);
    if (exchange_ == "long-sum") grid.comm().all_reduce(many, ReduceOp::sum);
    if (exchange_ == "row-sum") grid.row_comm().all_reduce(few, ReduceOp::sum);
    if (exchange_ == "own-sum") own_->all_reduce(few, ReduceOp::sum);
    if (exchange_ == "broadcast") grid.comm().broadcast(few, 0);
    if (exchange_ == "barrier") grid.comm().barrier();
    if (exchange_ == "ring") {
      const int rank = grid.comm().rank(), size = grid.comm().size();
      grid.comm().send_receive(few, (rank + 1) % size, from, (rank + size - 1) % size, 5);
    }
    grid.backend()->kernels<double>().add(alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    do_apply(alpha, Y, beta, X);
  }

  std::string exchange_;
  Faults& faults_;
  std::unique_ptr<Communicator> own_;
};

/// Applies such an operator alone ten times, and then in a solver.
int exchange(Communicator& world, const std::string& name) {
  Faults faults(world.rank());
  const auto grid =
      std::make_shared<const ProcessGrid>(world, near_square(world.size()), make_host_backend());
  const Space space{grid, Cut::balanced(Axis::all, 12, *grid), Axis::uncut};
  const OperatorPtr<double> A = std::make_shared<OwnMessages>(space, name, faults);
  DistMatrix<double> X(grid, space.layout(3)), Y(grid, space.layout(3));
  Y.fill([](Index i, Index j) { return static_cast<double>(i + j); });
  for (int k = 0; k < 10; ++k) A->apply(1, Y, 0, X);
  SolveOptions options;
  options.damp = 0.5;
  options.tolerance = 0;
  options.max_iterations = 20;
  cgls<double>(*A, Y, X, options);
  std::printf("done\n");
  return 0;
}

/// Every rank catches what is thrown.
int catching(Communicator& world, const std::string& name) {
  try {
    return exchange(world, name);
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d caught %d of rank %d: %s\n", world.rank(), static_cast<int>(error.status()),
                 error.rank(), error.what());
    return static_cast<int>(error.status());
  }
}

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
  if (argc > 2) return catching(session.world(), argv[1]);
  return session.run(
      [&] { return argc > 1 ? exchange(session.world(), argv[1]) : compute(session.world()); });
}
