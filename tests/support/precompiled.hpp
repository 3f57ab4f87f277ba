// SPDX-License-Identifier: BSD-3-Clause
// Headers that most tests include are read once for all. Tests still include what they use.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
