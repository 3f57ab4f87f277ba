// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/types.hpp"

namespace gridlops::program {

// What is wrong with the text, or nothing.

std::string whole_number_problem(const std::string& text, Index lowest);
/// Finite numbers from `lowest` on.
std::string number_problem(const std::string& text, double lowest);
std::string choice_problem(const std::string& text, const std::vector<std::string>& choices);

/// The value of a text for which nothing is wrong.
Index whole_number(const std::string& text);
double number(const std::string& text);

/// "; did you mean '…'?" with the candidate that somebody who typed text may have meant; empty if there is
/// none.
std::string suggestion(const std::string& text, const std::vector<std::string>& candidates);

std::string joined(const std::vector<std::string>& words, const std::string& separator);

}  // namespace gridlops::program
