// SPDX-License-Identifier: BSD-3-Clause
// Precompiled headers that most sources of programs include. Each source still includes the headers it uses.
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
