// SPDX-License-Identifier: BSD-3-Clause
// The standard headers that most sources include, precompiled. Sources still include what they use.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
