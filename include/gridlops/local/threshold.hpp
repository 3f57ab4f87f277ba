// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/base/export.hpp"

namespace gridlops {

/// What makes vectors sparse, element by element (the proximal maps of t times a penalty, for z = |z|eⁱᶿ):
///
///   soft   max(|z| − t, 0) eⁱᶿ                                       Σ|z|
///   hard   z where |z| > √(2t), else 0                               the number of z ≠ 0
///   half   (2/3) z (1 + cos(2π/3 − (2/3) arccos((t/8)(|z|/3)^−3/2)))  ½Σ√|z|
///          where |z| > (54^⅓/4) t^⅔, else 0 (Xu, Chang, Xu, Zhang: L½ regularization, IEEE Trans. Neural
///          Networks and Learning Systems 23, 2012)
enum class Threshold { soft, hard, half };
/// "soft", "hard" or "half".
GRIDLOPS_EXPORT const char* name_of(Threshold threshold);

}  // namespace gridlops
