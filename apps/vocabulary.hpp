// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "gridlops/cost_model.hpp"
#include "option_list.hpp"

namespace gridlops::program {

// What command lines say in more than one place.

Names<ScalarType> types();
Names<Algorithm> algorithms();
Names<SummaForm> summa_forms();
/// "auto" is none.
Names<std::optional<Storage>> storages();

/// What is wrong with "PxQ", or nothing.
std::string grid_problem(const std::string& text);

/// Placeholders only: the names of the variables in the environment would fill half of the help.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(28); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_size() == 0 ? std::string() : " " + option->get_type_name();
    return option->get_required() ? type + " (required)" : type;
  }
};

}  // namespace gridlops::program
