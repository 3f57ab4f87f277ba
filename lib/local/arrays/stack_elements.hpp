// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "base/numbers.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

/// Elements on the stack, uninitialised: an array of complex numbers would be set to 0.
template <Scalar T, Index size>
class StackElements {
 public:
  T* data() { return reinterpret_cast<T*>(reals_.data()); }

 private:
  std::array<Real<T>, at(size* Index{sizeof(T) / sizeof(Real<T>)})> reals_;
};

}  // namespace gridlops
