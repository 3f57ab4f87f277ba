// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "cuda/kernels/complex.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops::cuda {

// Views, pointers and scalars as kernels see them: std::complex has the layout of Complex.

template <class T>
auto on_device(const T* data) {
  return reinterpret_cast<const DeviceScalar<T>*>(data);
}
template <class T>
auto on_device(T* data) {
  return reinterpret_cast<DeviceScalar<T>*>(data);
}
template <class T>
MatrixView<const DeviceScalar<T>> on_device(MatrixView<const T> X) {
  return {on_device(X.data), X.rows, X.cols, X.stride};
}
template <class T>
MatrixView<DeviceScalar<T>> on_device(MatrixView<T> X) {
  return {on_device(X.data), X.rows, X.cols, X.stride};
}
template <Scalar T>
DeviceScalar<T> scalar(T value) {
  if constexpr (is_complex<T>) {
    return {value.real(), value.imag()};
  } else {
    return value;
  }
}

}  // namespace gridlops::cuda
