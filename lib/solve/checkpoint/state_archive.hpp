// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/solver.hpp"
#include "solve/methods/small_dense.hpp"

namespace gridlops {

/// The last enumerator of an enumeration that archives have.
template <class Enumeration>
inline constexpr Enumeration last_of = Enumeration();
template <>
inline constexpr StopReason last_of<StopReason> = StopReason::corrupted;
template <>
inline constexpr GuardAlarm::Kind last_of<GuardAlarm::Kind> = GuardAlarm::Kind::non_finite;
template <>
inline constexpr SpaceEnd last_of<SpaceEnd> = SpaceEnd::non_finite;

/// Saves the numbers of a solver's state to a checkpoint, or loads them from one. The same function visits
/// them for both, in the same order. They are the same on all ranks, and stored as doubles, which represent
/// whole numbers up to 2⁵³ exactly.
///
/// Nothing is believed of what is loaded. Whole numbers must be whole, and fit their type; enumerators must
/// exist; no list or matrix has more elements than numbers are left. What must fit together besides is for
/// the caller to require().
class StateArchive {
 public:
  /// Makes an empty archive to fill.
  StateArchive() = default;
  /// Makes an archive to read from. Visits throw InputError if its numbers are not those of such a state.
  explicit StateArchive(std::vector<double> numbers) : numbers_(std::move(numbers)), loading_(true) {}

  bool loading() const { return loading_; }
  const std::vector<double>& numbers() const { return numbers_; }

  template <class... Values>
  void visit(Values&... values) {
    (visit_one(values), ...);
  }
  /// Visits a vector of numbers, or of values with their own visit(StateArchive&), including its length.
  template <class Value>
  void visit_list(std::vector<Value>& values) {
    visit_list(values, [this](Value& value) { visit_one(value); });
  }
  /// Visits a list of any values, each of which visit_value(value) visits: at least one number.
  template <class Value, class Visit>
  void visit_list(std::vector<Value>& values, Visit&& visit_value) {
    auto size = static_cast<Index>(values.size());
    visit_count(size, left());
    if (loading_) values.resize(static_cast<std::size_t>(size));
    for (Value& value : values) visit_value(value);
  }
  /// Visits a list that must have the length that it has now.
  template <class Value>
  void visit_all(std::vector<Value>& values) {
    auto size = static_cast<Index>(values.size());
    visit_one(size);
    require(size == static_cast<Index>(values.size()));
    for (Value& value : values) visit_one(value);
  }
  /// Visits a number from 0 to `most`.
  template <std::signed_integral Whole>
  void visit_count(Whole& count, Index most) {
    visit_one(count);
    require(!loading_ || (count >= 0 && count <= most));
  }
  /// Throws InputError unless what was loaded is so.
  void require(bool fits) const {
    if (!fits)
      throw InputError(message("number ", next_, " of the checkpoint's ", numbers_.size(),
                               " does not fit the others, or this solver: another version wrote it, or "
                               "something else; begin anew, or restart from another checkpoint"));
  }

 private:
  Index left() const { return static_cast<Index>(numbers_.size() - next_); }

  void visit_one(double& value) {
    if (!loading_) return numbers_.push_back(value);
    if (next_ == numbers_.size())
      throw InputError("the checkpoint holds too few numbers for this solver; another version wrote it");
    value = numbers_[next_++];
  }
  template <std::signed_integral Whole>
  void visit_one(Whole& value) {
    auto number = static_cast<double>(value);
    visit_one(number);
    if (!loading_) return;
    constexpr double most = std::min(0x1p53, static_cast<double>(std::numeric_limits<Whole>::max()));
    require(std::abs(number) <= most && number == std::floor(number));
    value = static_cast<Whole>(number);
  }
  void visit_one(bool& value) {
    double number = value ? 1 : 0;
    visit_one(number);
    value = number != 0;
  }
  template <class Enumeration>
  requires std::is_enum_v<Enumeration>
  void visit_one(Enumeration& value) {
    auto number = static_cast<Index>(value);
    static_assert(last_of<Enumeration> != Enumeration());
    visit_count(number, static_cast<Index>(last_of<Enumeration>));
    value = static_cast<Enumeration>(number);
  }
  template <class Composite>
  requires requires(Composite& value, StateArchive& archive) { value.visit(archive); }
  void visit_one(Composite& value) { value.visit(*this); }
  void visit_one(std::complex<double>& value) {
    double real = value.real(), imag = value.imag();
    visit(real, imag);
    value = {real, imag};
  }
  template <Scalar S>
  void visit_one(SmallMatrix<S>& A) {
    constexpr Index reals = is_complex<S> ? 2 : 1;
    Index rows = A.rows(), cols = A.cols();
    // There are lists with as many numbers as a matrix without elements has rows or columns.
    const auto most = static_cast<Index>(numbers_.size());
    visit_count(rows, most);
    visit_count(cols, most);
    require(!loading_ || rows == 0 || cols <= left() / reals / rows);
    if (loading_) A = SmallMatrix<S>(rows, cols);
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < rows; ++i) visit_one(A(i, j));
  }

  std::vector<double> numbers_;
  std::size_t next_ = 0;
  bool loading_ = false;
};

}  // namespace gridlops
