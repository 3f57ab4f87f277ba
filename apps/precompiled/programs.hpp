// SPDX-License-Identifier: BSD-3-Clause
// Headers that most sources of programs include, precompiled. Sources still include what they use.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
