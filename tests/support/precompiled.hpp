// SPDX-License-Identifier: BSD-3-Clause
// The compiler reads these headers once for all tests. Each test still includes the headers it uses.
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
