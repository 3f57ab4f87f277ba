// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/gpu_kernels.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "cuda/kernels/kernels.hpp"
#include "cuda/on_device.hpp"

namespace gridlops::cuda {

template <Scalar T>
void CudaArrayKernels<T>::add_box(T alpha, const T* x, T beta, T* y, const BoxLoops& box) const {
  environment_.begun(ArrayLaunch<DeviceScalar<T>>::add_box(environment_.stream(), scalar(alpha), on_device(x),
                                                           scalar(beta), on_device(y), box),
                     "the kernel add_box");
}

template <Scalar T>
void CudaArrayKernels<T>::add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta,
                                   MatrixView<T> Y, const LineExtent& extent) const {
  environment_.begun(ArrayLaunch<DeviceScalar<T>>::add_band(environment_.stream(), scalar(alpha), A,
                                                            on_device(X), scalar(beta), on_device(Y), extent),
                     "the kernel add_band");
}

template <Scalar T>
void CudaArrayKernels<T>::add_bands(T alpha, const std::vector<BandTerm<Real<T>>>& terms,
                                    MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  int launches = 0;
  const cudaError_t result = ArrayLaunch<DeviceScalar<T>>::add_bands(
      environment_.stream(), scalar(alpha), terms, on_device(X), scalar(beta), on_device(Y), launches);
  environment_.begun(result, "the kernels of add_bands", launches);
}

template <Scalar T>
void CudaArrayKernels<T>::add_runs(T alpha, const RunWeights<Real<T>>& A, MatrixView<const T> X, T beta,
                                   MatrixView<T> Y, const LineExtent& extent) const {
  environment_.begun(ArrayLaunch<DeviceScalar<T>>::add_runs(environment_.stream(), scalar(alpha), A,
                                                            on_device(X), scalar(beta), on_device(Y), extent),
                     "the kernel add_runs");
}

template <Scalar T>
void CudaArrayKernels<T>::group_norms(const RowGroups& groups, MatrixView<const T> X, MatrixView<T> N) const {
  environment_.begun(
      ArrayLaunch<DeviceScalar<T>>::group_norms(environment_.stream(), groups, on_device(X), on_device(N)),
      "the kernel group_norms");
}

template <Scalar T>
void CudaArrayKernels<T>::shrink_groups(const double* t, const RowGroups& groups, MatrixView<const T> N,
                                        MatrixView<T> X) const {
  environment_.begun(ArrayLaunch<DeviceScalar<T>>::shrink_groups(environment_.stream(), t, groups,
                                                                 on_device(N), on_device(X)),
                     "the kernel shrink_groups", launches_for<double>(X.cols));
}

template <Scalar T>
void CudaArrayKernels<T>::box_update(const BoxUpdate<T>& update) const {
  const auto& [kind, t, V, X, lower, upper, Y] = update;
  environment_.begun(
      ArrayLaunch<DeviceScalar<T>>::box_update(environment_.stream(), kind, t, on_device(V), on_device(X),
                                               on_device(lower), on_device(upper), on_device(Y)),
      "the kernel box_update", launches_for<double>(Y.cols));
}

template <Scalar T>
Index CudaArrayKernels<T>::migration_scratch_bytes(const MigrationTables<Real<T>>& tables,
                                                   Index columns) const {
  return ArrayLaunch<DeviceScalar<T>>::migration_scratch(tables, columns) * Index{sizeof(T)};
}

template <Scalar T>
void CudaArrayKernels<T>::demigrate(const MigrationTables<Real<T>>& tables, bool adds,
                                    MatrixView<const T> image, MatrixView<T> data, std::byte* scratch) const {
  int launches = 0;
  const cudaError_t result = ArrayLaunch<DeviceScalar<T>>::demigrate(
      environment_.stream(), tables, adds, on_device(image), on_device(data),
      reinterpret_cast<DeviceScalar<T>*>(scratch), launches);
  environment_.begun(result, "the kernels of demigrate", launches);
}

template <Scalar T>
void CudaArrayKernels<T>::migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data,
                                  MatrixView<T> image, std::byte* scratch) const {
  int launches = 0;
  const cudaError_t result =
      ArrayLaunch<DeviceScalar<T>>::migrate(environment_.stream(), tables, on_device(data), on_device(image),
                                            reinterpret_cast<DeviceScalar<T>*>(scratch), launches);
  environment_.begun(result, "the kernels of migrate", launches);
}

#define GRIDLOPS_INSTANTIATE(T) template class CudaArrayKernels<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::cuda
