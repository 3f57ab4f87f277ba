// SPDX-License-Identifier: BSD-3-Clause
#include "solve/option_checks.hpp"

#include <cmath>
#include <type_traits>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

namespace {

template <class Value>
constexpr bool is_list = std::is_same_v<Value, PerColumn> || std::is_same_v<Value, std::vector<double>>;
template <class Value>
constexpr bool is_optional = std::is_same_v<Value, std::optional<double>>;
/// Whether checkpoints store values of this type as numbers.
template <class Value>
constexpr bool is_numbers = is_list<Value> || is_optional<Value>;

// The numbers of an option; none if it is unset.
std::vector<double> numbers_of(double value) { return {value}; }
std::vector<double> numbers_of(Index value) { return {static_cast<double>(value)}; }
std::vector<double> numbers_of(const std::vector<double>& values) { return values; }
std::vector<double> numbers_of(const PerColumn& values) { return values.values(); }
template <class Value>
std::vector<double> numbers_of(const std::optional<Value>& value) {
  return value ? numbers_of(*value) : std::vector<double>{};
}
template <class Other>
std::vector<double> numbers_of(Other) {
  return {};  // a flag or a choice
}

template <class Value>
std::string text_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    return value ? "on" : "off";
  } else if constexpr (std::is_same_v<Value, Index>) {
    return message(value);
  } else {
    std::string text;
    for (const double number : numbers_of(value)) text += message(text.empty() ? "" : ", ", number);
    return text.empty() ? "unset" : text;
  }
}

const PerColumn* per_column(const PerColumn& values) { return &values; }
const PerColumn* per_column(const std::optional<PerColumn>& values) { return values ? &*values : nullptr; }
template <class Other>
const PerColumn* per_column(const Other&) {
  return nullptr;
}

[[noreturn]] void refuse(const char* method, const char* option, Feature feature) {
  throw UsageError(message(option, " is an option of ", names_of(solvers_with(feature)),
                           ", and means nothing to ", method, "; leave it out, or take another solver"));
}

}  // namespace

void describe_options(Agreement& agreement, const SolveOptions& options) {
  for_each_option(
      [&](const SolverOption& option, auto field) { agreement.on(option.field, text_of(options.*field)); });
  describe_options(agreement, options.checkpoint);
}

void describe_options(Agreement& agreement, const CheckpointOptions& options) {
  agreement.on("the directory of checkpoints", options.directory)
      .on("the iterations between checkpoints", options.every_iterations)
      .on("the checkpoint to go on from", options.restart);
}

void check_options(const char* method, Feature features, const SolveOptions& options, Index nrhs) {
  const SolveOptions defaults;
  for_each_option([&](const SolverOption& option, auto field) {
    const auto& value = options.*field;
    const PerColumn* const each = per_column(value);
    for (const double number : numbers_of(value))
      require<UsageError>(number >= 0 && std::isfinite(number), option.field, " is ", number,
                          "; it must be a finite number ≥ 0");
    require<ShapeError>(each == nullptr || each->is_one() || std::ssize(each->values()) == nrhs,
                        each == nullptr ? 0 : each->values().size(), " values of ", option.field,
                        " were given for ", nrhs, " right-hand sides; give one for each, or one for all");
    if (!has(features, option.feature) && value != defaults.*field)
      refuse(method, option.title(), option.feature);
  });
  if (!options.damp.is_one() && !has(features, Feature::damping_per_column))
    refuse(method, "damps", Feature::damping_per_column);
}

void check_options(const CheckpointOptions& options) {
  require<UsageError>(options.every_iterations >= 0, "a checkpoint every ", options.every_iterations,
                      " iterations is impossible; 0 means that their number is no reason for one");
  require<UsageError>(options.every_seconds >= 0 && std::isfinite(options.every_seconds),
                      "a checkpoint every ", options.every_seconds,
                      " seconds is impossible; 0 means that time is no reason for one");
}

void check_error_options(const SolveOptions& options, Index rows, Index cols) {
  require<UsageError>(options.sigma_min == 0 || rows >= cols, "sigma_min is ", options.sigma_min,
                      ", but an operator of ", rows, " x ", cols, " takes some models to 0: leave it out");
  require<UsageError>(options.error == 0 || options.sigma_min > 0 || options.damp.any(), "error is ",
                      options.error, ", but with neither damp nor sigma_min nothing bounds errors");
  require<UsageError>(options.error == 0 || options.frobenius_norm, "error is ", options.error,
                      ", but without frobenius_norm nothing bounds rounding");
  if (options.frobenius_norm) require_possible(options.sigma_min, *options.frobenius_norm, rows, cols);
}

std::string fixed_words(Feature features, const SolveOptions& options) {
  std::string words;
  for_each_option([&](const SolverOption& option, auto field) {
    using Value = std::remove_cvref_t<decltype(options.*field)>;
    if (option.at_restart != AtRestart::fixed || !has(features, option.feature) || is_numbers<Value>) return;
    if (option.field == std::string_view("initial_guess")) return;  // a fingerprint is kept of it
    words += message(words.empty() ? "" : ", ", option.field, " ", text_of(options.*field));
  });
  return words;
}

std::vector<FixedNumbers> fixed_numbers(Feature features, const SolveOptions& options, Index nrhs) {
  std::vector<FixedNumbers> fixed;
  for_each_option([&](const SolverOption& option, auto field) {
    using Value = std::remove_cvref_t<decltype(options.*field)>;
    if (option.at_restart != AtRestart::fixed || !has(features, option.feature) || !is_numbers<Value>) return;
    FixedNumbers numbers{option.field, numbers_of(options.*field)};
    if (std::is_same_v<Value, PerColumn> && numbers.values.size() == 1) {
      const double all = numbers.values.front();
      numbers.values.assign(at(nrhs), all);
    }
    fixed.push_back(std::move(numbers));
  });
  return fixed;
}

void set_fixed_numbers(const FixedNumbers& fixed, SolveOptions& options) {
  for_each_option([&](const SolverOption& option, auto field) {
    using Value = std::remove_cvref_t<decltype(options.*field)>;
    if (fixed.name != std::string_view(option.field)) return;
    if constexpr (is_list<Value>) options.*field = fixed.values;
    if constexpr (is_optional<Value>) options.*field = fixed.values.front();
  });
}

}  // namespace gridlops
