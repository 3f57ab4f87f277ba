// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "gridlops/solve/spectral_factor.hpp"

#include "native.hpp"

namespace gridlops::python {
namespace {

py::dict dict_of(const FactorFacts& facts) {
  return py::dict(py::arg("of_data") = facts.of_data, py::arg("by_qr") = facts.by_qr,
                  py::arg("damp") = facts.damp, py::arg("shift") = facts.shift,
                  py::arg("condition") = facts.condition, py::arg("rank") = facts.rank);
}

template <Scalar T>
void bind_factor(py::module_ native) {
  native.def("factor", [](const Operator<T>& A, double damp) {
    std::shared_ptr<const Factor<T>> made;
    {
      const py::gil_scoped_release release;
      made = factor<T>(*A.ptr, damp);
    }
    return py::make_tuple(Operator<T>{made}, dict_of(made->facts()));
  });
  native.def("spectral_factor", [](const Operator<T>& A, double least_damp) {
    std::shared_ptr<const SpectralFactor<T>> made;
    {
      const py::gil_scoped_release release;
      made = spectral_factor<T>(*A.ptr, least_damp);
    }
    return py::make_tuple(Operator<T>{made}, dict_of(made->facts()), made->singular_values(),
                          py::cpp_function([made](double damp) { return made->free_dimensions(damp); }));
  });
}

}  // namespace

void bind_factors(py::module_& native) {
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_factor<T>(module); });
}

}  // namespace gridlops::python
