// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gridlops/types.hpp"

namespace gridlops::bench {

/// "a,b,c" → a, b, c.
std::vector<std::string> items(const std::string& list);

/// What is wrong with the first item for which there is something, or nothing.
std::string list_problem(const std::string& list,
                         const std::function<std::string(const std::string&)>& item_problem);

/// Whole numbers: "16,100" is 16 and 100, "1..16" 1, 2, 4, 8 and 16, "10..40+10" 10, 20, 30 and 40.
std::string numbers_problem(const std::string& list, Index lowest);
std::vector<Index> numbers(const std::string& list);

}  // namespace gridlops::bench
