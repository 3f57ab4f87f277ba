// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <string>
#include <vector>

#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// An operator whose products are Python functions: forward(X, Y) writes Y ← A X, adjoint(Y, X) writes X ← Aᴴ
/// Y. Every member of the grid calls them, and they may communicate.
template <Scalar T>
class FunctionOperator final : public LinearOperator<T> {
 public:
  FunctionOperator(Space range, Space domain, py::object forward, py::object adjoint)
      : LinearOperator<T>(std::move(range), std::move(domain)),
        forward_(keep(std::move(forward))),
        adjoint_(keep(std::move(adjoint))) {}

 private:
  const Space& output_of(Op op) const { return op == Op::none ? this->range() : this->domain(); }

  void do_reserve(Op op, const Partition& columns) const override {
    const Space& out = output_of(op);
    scratch_.reserve(out.grid->backend(), out.local_rows() * out.local_columns(columns));
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y, beta, X);
  }

  /// out ← α · function(in) + β · out.
  void run(Op op, T alpha, const ConstDistMatrix<T>& in, T beta, DistMatrix<T>& out) const {
    if (alpha == T(1) && beta == T(0)) return call(op, in, out);
    DistMatrix<T> product = output_of(op).matrix(out.layout().cols.partition, scratch_);
    call(op, in, product);
    out.grid()->backend()->template kernels<T>().add(alpha, product.local(), beta, out.local());
  }

  void call(Op op, const ConstDistMatrix<T>& in, DistMatrix<T>& out) const {
    const auto borrowed = [](const ConstDistMatrix<T>& X, bool writable) {
      const MatrixView<const T> local = X.local();
      // The flag keeps Python from writing to read-only memory.
      const MatrixView<T> block(const_cast<T*>(local.data), local.rows, local.cols, local.stride);
      return std::make_shared<Matrix<T>>(
          Matrix<T>{DistMatrix<T>(X.grid(), X.layout(), block), nullptr, writable});
    };
    const py::gil_scoped_acquire lock;
    (op == Op::none ? *forward_ : *adjoint_)(borrowed(in, false), borrowed(out, true));
  }

  std::shared_ptr<py::object> forward_, adjoint_;
  mutable Buffer<T> scratch_;
};

/// Calls a product as function(in, out), with memoryviews of the blocks.
template <Scalar T>
LocalProduct<T> local_product(py::object function) {
  return [kept = keep(std::move(function))](MatrixView<const T> in, MatrixView<T> out) {
    constexpr auto size = static_cast<py::ssize_t>(sizeof(T));
    // An empty block gets an address, too, because a memoryview needs one.
    static T nothing{};
    const auto view = [](auto block, bool read_only) {
      T* data = block.data == nullptr ? &nothing : const_cast<T*>(block.data);
      return py::memoryview::from_buffer(static_cast<void*>(data), size, py::format_descriptor<T>::value,
                                         {block.rows, block.cols}, {size, block.stride * size}, read_only);
    };
    const py::gil_scoped_acquire lock;
    (*kept)(view(in, true), view(out, false));
  };
}

template <Scalar T>
std::vector<OperatorPtr<T>> pointers(const std::vector<Operator<T>>& operators) {
  std::vector<OperatorPtr<T>> result;
  for (const Operator<T>& A : operators) result.push_back(A.ptr);
  return result;
}

py::dict activity_of(const OperatorActivity& activity) {
  py::dict result;
  result["forward_applications"] = activity.forward_applications;
  result["adjoint_applications"] = activity.adjoint_applications;
  result["forward_columns"] = activity.forward_columns;
  result["adjoint_columns"] = activity.adjoint_columns;
  return result;
}

template <Scalar T>
void bind_class(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::class_<A>(native, "Operator")
      .def_property_readonly("domain", [](const A& a) { return a.ptr->domain(); })
      .def_property_readonly("range", [](const A& a) { return a.ptr->range(); })
      .def_property_readonly("activity", [](const A& a) { return activity_of(a.ptr->activity()); })
      .def(
          "apply",
          [](const A& a, T alpha, const M& X, T beta, M& Y) {
            a.ptr->apply(alpha, X.matrix, beta, Y.output());
          },
          unlocked)
      .def(
          "apply_adjoint",
          [](const A& a, T alpha, const M& Y, T beta, M& X) {
            a.ptr->apply_adjoint(alpha, Y.matrix, beta, X.output());
          },
          unlocked)
      .def(
          "matrix_changed", [](const A& a) { matrix_changed<T>(*a.ptr); }, unlocked)
      .def(
          "dot_test",
          [](const A& a, Index columns, double tolerance, std::uint64_t seed) {
            const DotTestResult result = dot_test<T>(*a.ptr, columns, tolerance, seed);
            return std::tuple(result.passed, result.mismatch, result.tolerance);
          },
          unlocked)
      .def(
          "estimate_norm",
          [](const A& a, int steps, std::uint64_t seed) { return estimate_norm<T>(*a.ptr, steps, seed); },
          unlocked)
      .def(
          "probable_sigma_min",
          [](const A& a, double failure, std::uint64_t seed) {
            return probable_sigma_min<T>(*a.ptr, failure, seed);
          },
          unlocked)
      .def(
          "proven_sigma_min", [](const A& a) { return proven_sigma_min<T>(*a.ptr); }, unlocked)
      .def(
          "lanczos_extremes",
          [](const A& a, int steps, std::uint64_t seed) {
            const SpectrumExtremes found = lanczos_extremes<T>(*a.ptr, steps, seed);
            return std::pair(found.smallest, found.largest);
          },
          unlocked)
      .def(
          "power_iteration",
          [](const A& a, Index iterations, double tolerance, std::uint64_t seed) {
            auto found = power_iteration<T>(*a.ptr, iterations, tolerance, seed);
            return std::tuple(found.eigenvalue, found.iterations, found.converged,
                              std::make_shared<M>(M{std::move(found.vector), nullptr}));
          },
          unlocked);
}

template <Scalar T>
void bind_algebra(py::module_ native) {
  using A = Operator<T>;
  native.def("adjoint", [](const A& a) { return A{adjoint<T>(a.ptr)}; });
  native.def("scale", [](T factor, const A& a) { return A{scale<T>(factor, a.ptr)}; });
  native.def("sum", [](const A& a, const A& b) { return A{sum<T>(a.ptr, b.ptr)}; });
  native.def("product", [](const A& a, const A& b) { return A{product<T>(a.ptr, b.ptr)}; });
  native.def("identity",
             [](const Space& range, const Space& domain) { return A{identity<T>(range, domain)}; });
  native.def("zero", [](const Space& range, const Space& domain) { return A{zero<T>(range, domain)}; });
  native.def("vertical_stack", [](const std::vector<A>& all) { return A{vertical_stack<T>(pointers(all))}; });
  native.def("horizontal_stack",
             [](const std::vector<A>& all) { return A{horizontal_stack<T>(pointers(all))}; });
  native.def("block_diagonal", [](const std::vector<A>& all) { return A{block_diagonal<T>(pointers(all))}; });
  native.def("damped", [](const A& a, double damp) { return A{damped<T>(a.ptr, damp)}; });
}

template <Scalar T>
void bind_makers(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  native.def("matrix_mult", [](const std::string& algorithm, const std::shared_ptr<M>& matrix, Index panel,
                               int lookahead, bool column_stable, const std::string& storage) {
    const MatrixMultOptions options{panel, lookahead, column_stable, parse_storage(storage)};
    return A{keep_alive(matrix_mult<T>(parse_algorithm(algorithm), share<T>(matrix), options), matrix)};
  });
  native.def("high_plane", [](const A& a) { return A{high_plane<T>(a.ptr)}; });
  native.def("diagonal", [](const Space& space, const std::shared_ptr<M>& d) {
    return A{keep_alive(diagonal<T>(space, share<T>(d)), d)};
  });
  native.def("function_operator", [](const Space& range, const Space& domain, py::object forward,
                                     py::object adjoint) {
    return A{std::make_shared<FunctionOperator<T>>(range, domain, std::move(forward), std::move(adjoint))};
  });
  native.def("local_operator",
             [](const Space& range, const Space& domain, py::object forward, py::object adjoint) {
               return A{local_operator<T>(range, domain, local_product<T>(std::move(forward)),
                                          local_product<T>(std::move(adjoint)))};
             });
}

template <Scalar T>
void bind_operators_of_type(py::module_ native) {
  bind_class<T>(native);
  bind_algebra<T>(native);
  bind_makers<T>(native);
}

}  // namespace

void bind_operators(py::module_& native) {
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_operators_of_type<T>(module); });
}

}  // namespace gridlops::python
