// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridlops::python::dlpack {

// The binary interface of DLPack, the part that this package uses, in a declaration of our own. Source: the
// specification https://dmlc.github.io/dlpack/latest/c_api.html (dmlc/dlpack, Apache-2.0), versions 0.8
// and 1. The order and the types of fields, the numbers and the names of capsules are DLPack's. A tensor
// travels in a capsule of Python, which is renamed once somebody has taken the tensor and will call its
// deleter.

/// Where memory is: a kind of device, and its number among those of its kind.
struct Device {
  std::int32_t kind, number;
};

constexpr std::uint8_t real_number = 2, complex_number = 5;  ///< codes of element types
/// `lanes` elements of `bits` bits each, which make one.
struct ElementType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

/// Views memory, at `byte_offset` bytes behind `data`. Strides are in elements; without them the tensor is in
/// C order.
struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  ElementType type;
  std::int64_t* sizes;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

/// A tensor before version 1.
struct Managed {
  static constexpr const char* capsule = "dltensor";
  static constexpr const char* taken = "used_dltensor";

  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);  ///< null: there is nothing to free
};

struct Version {
  std::uint32_t major, minor;
};
constexpr std::uint64_t is_read_only = 1, is_copied = 2;  ///< flags
/// A tensor from version 1 on. Of another major version only the fields before the flags may be read.
struct VersionedManaged {
  static constexpr const char* capsule = "dltensor_versioned";
  static constexpr const char* taken = "used_dltensor_versioned";

  Version version;
  void* context;
  void (*deleter)(VersionedManaged*);
  std::uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(void*) != 8 ||
              (sizeof(Tensor) == 48 && offsetof(Tensor, sizes) == 24 && offsetof(Managed, deleter) == 56 &&
               offsetof(VersionedManaged, flags) == 24 && offsetof(VersionedManaged, tensor) == 32));

}  // namespace gridlops::python::dlpack
