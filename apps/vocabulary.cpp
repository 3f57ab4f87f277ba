// SPDX-License-Identifier: BSD-3-Clause
#include "vocabulary.hpp"

#include <algorithm>
#include <cctype>

#include "gridlops/error.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops::program {

namespace {

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return text;
}

}  // namespace

std::string environment_name(const CLI::App& subcommand, const std::string& option) {
  return upper_case(subcommand.get_parent()->get_name() + "-" + subcommand.get_name() + "-" + option);
}

Names<ScalarType> types() {
  Names<ScalarType> names;
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128})
    names.emplace_back(name_of(type), type);
  return names;
}

Names<Algorithm> algorithms() {
  Names<Algorithm> names;
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::block, Algorithm::summa,
                                    Algorithm::stationary_a, Algorithm::stationary_b})
    names.emplace_back(name_of(algorithm), algorithm);
  return names;
}

Names<SummaForm> summa_forms() {
  Names<SummaForm> names;
  for (const SummaForm form : {SummaForm::broadcast, SummaForm::all_gather})
    names.emplace_back(name_of(form), form);
  return names;
}

Names<std::optional<Storage>> storages() {
  Names<std::optional<Storage>> names{{"auto", std::nullopt}};
  for (const Storage storage : {Storage::columns, Storage::panels})
    names.emplace_back(name_of(storage), storage);
  return names;
}

std::string grid_problem(const std::string& text) {
  try {
    parse_grid_shape(text);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace gridlops::program
