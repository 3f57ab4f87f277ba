// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/factor.hpp"

#include <memory>

#include "native.hpp"

namespace gridlops::python {
namespace {

template <Scalar T>
void bind_factor(py::module_ native) {
  native.def("factor", [](const Operator<T>& A, double damp) {
    std::shared_ptr<const Factor<T>> made;
    {
      const py::gil_scoped_release release;
      made = factor<T>(*A.ptr, damp);
    }
    const FactorFacts& facts = made->facts();
    return py::make_tuple(Operator<T>{made},
                          py::dict(py::arg("of_data") = facts.of_data, py::arg("by_qr") = facts.by_qr,
                                   py::arg("damp") = facts.damp, py::arg("shift") = facts.shift,
                                   py::arg("condition") = facts.condition, py::arg("rank") = facts.rank));
  });
}

}  // namespace

void bind_factors(py::module_& native) {
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_factor<T>(module); });
}

}  // namespace gridlops::python
