// SPDX-License-Identifier: BSD-3-Clause
#include "dlpack.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include "native.hpp"

namespace gridlops::python {
namespace {

/// A tensor that is given away, the arrays to which it points, and what keeps its memory alive.
template <class AnyManaged>
struct Given {
  AnyManaged managed{};
  std::array<std::int64_t, 2> sizes{}, strides{};
  std::shared_ptr<void> memory;
};

/// The deleter of such tensors. Any thread may call it, with or without the interpreter's lock.
template <class AnyManaged>
void release(AnyManaged* managed) {
  delete static_cast<Given<AnyManaged>*>(managed->context);
}

/// The destructor of a capsule: frees a tensor that nobody has taken.
template <class AnyManaged>
void release_if_left(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, AnyManaged::capsule) == 0) return;
  const py::error_scope kept;  // an exception may be on its way
  release(static_cast<AnyManaged*>(PyCapsule_GetPointer(capsule, AnyManaged::capsule)));
}

/// A capsule with this rank's block. The capsule, then whoever takes the tensor, keeps the memory alive.
template <class AnyManaged, Scalar T>
py::object capsule_of(const std::shared_ptr<Matrix<T>>& X, dlpack::Device device, std::uint64_t flags) {
  const MatrixView<T> block = X->matrix.local();
  auto given = std::make_unique<Given<AnyManaged>>();
  given->sizes = {block.rows, block.cols};
  given->strides = {1, std::max({Index{1}, block.rows, block.stride})};
  given->memory = X;
  AnyManaged& managed = given->managed;
  managed.context = given.get();
  managed.deleter = release<AnyManaged>;
  constexpr dlpack::ElementType type{is_complex<T> ? dlpack::complex_number : dlpack::real_number,
                                     8 * sizeof(T), 1};
  managed.tensor = {
      block.empty() ? nullptr : block.data, device, 2, type, given->sizes.data(), given->strides.data(), 0};
  if constexpr (std::is_same_v<AnyManaged, dlpack::VersionedManaged>) {
    managed.version = {1, 0};
    managed.flags = flags;
  }
  PyObject* const capsule = PyCapsule_New(&managed, AnyManaged::capsule, release_if_left<AnyManaged>);
  if (capsule == nullptr) throw py::error_already_set();
  static_cast<void>(given.release());  // the deleter owns it
  return py::reinterpret_steal<py::object>(capsule);
}

/// This rank's block, or a copy of it in memory of the same kind, as a tensor of DLPack's version 1, or of
/// one before. Not collective. A tensor before version 1 cannot say that it is read-only.
template <Scalar T>
py::object give_tensor(const std::shared_ptr<Matrix<T>>& X, std::pair<int, int> device, bool is_versioned,
                       bool copies) {
  std::shared_ptr<Matrix<T>> block = X;
  if (copies) block = std::make_shared<Matrix<T>>(Matrix<T>{X->matrix.clone(), nullptr, true});
  const dlpack::Device where{device.first, device.second};
  const std::uint64_t flags = (copies ? dlpack::is_copied : 0) | (block->writable ? 0 : dlpack::is_read_only);
  return is_versioned ? capsule_of<dlpack::VersionedManaged>(block, where, flags)
                      : capsule_of<dlpack::Managed>(block, where, flags);
}

/// Takes the tensor of a capsule. Its deleter is called when the last element of the result, which keeps its
/// memory alive, is gone.
template <class AnyManaged>
py::tuple take(const py::object& capsule) {
  auto* const managed = static_cast<AnyManaged*>(PyCapsule_GetPointer(capsule.ptr(), AnyManaged::capsule));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), AnyManaged::taken) != 0)
    throw py::error_already_set();
  const py::capsule keeper(managed, [](void* taken) {
    auto* const tensor = static_cast<AnyManaged*>(taken);
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  bool read_only = false;
  if constexpr (std::is_same_v<AnyManaged, dlpack::VersionedManaged>) {
    if (managed->version.major != 1) {
      throw UsageError(
          "a tensor of DLPack's version " + std::to_string(managed->version.major) +
              " came, although version 1 was asked for; give an array of a library that has that one",
          KnownTo::one_rank);
    }
    read_only = (managed->flags & dlpack::is_read_only) != 0;
  }
  const dlpack::Tensor& tensor = managed->tensor;
  py::list sizes, strides;
  for (std::int32_t k = 0; k < tensor.dimensions; ++k) {
    sizes.append(tensor.sizes[k]);
    if (tensor.strides != nullptr) strides.append(tensor.strides[k]);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  return py::make_tuple(address == 0 ? 0 : address + tensor.byte_offset, py::tuple(sizes),
                        tensor.strides == nullptr ? py::object(py::none()) : py::object(py::tuple(strides)),
                        py::make_tuple(tensor.type.code, tensor.type.bits, tensor.type.lanes),
                        py::make_tuple(tensor.device.kind, tensor.device.number), read_only, keeper);
}

/// (address, sizes, strides in elements or None, (code, bits, lanes), (kind, number), whether it is
/// read-only, what keeps it alive). Throws UsageError, on this rank alone, for anything but a tensor to be
/// taken.
py::tuple take_tensor(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::VersionedManaged::capsule) != 0)
    return take<dlpack::VersionedManaged>(capsule);
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::Managed::capsule) != 0) return take<dlpack::Managed>(capsule);
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::VersionedManaged::taken) != 0 ||
      PyCapsule_IsValid(capsule.ptr(), dlpack::Managed::taken) != 0) {
    throw UsageError(
        "the capsule of DLPack is consumed: another library has taken its tensor, and frees it; an array's "
        "__dlpack__() must make a new capsule at each call",
        KnownTo::one_rank);
  }
  throw UsageError("__dlpack__() returned " + py::repr(capsule).cast<std::string>() +
                       ", which is no capsule of DLPack; give an array of NumPy, CuPy, PyTorch or JAX",
                   KnownTo::one_rank);
}

}  // namespace

void bind_dlpack(py::module_& native) {
  native.def("take_tensor", take_tensor);
  for_each_type(native, []<Scalar T>(py::module_ module) { module.def("give_tensor", give_tensor<T>); });
}

}  // namespace gridlops::python
