// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <concepts>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/base/types.hpp"
#include "solve/methods/small_dense.hpp"

namespace gridlops {

/// Saves the numbers of a solver's state to a checkpoint, or loads them from one. The same function visits
/// them for both, in the same order. They are the same on all ranks, and stored as doubles, which represent
/// whole numbers up to 2⁵³ exactly.
class StateArchive {
 public:
  /// Makes an empty archive to fill.
  StateArchive() = default;
  /// Makes an archive to read from. Visits throw InputError if it has too few numbers.
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
    auto size = static_cast<Index>(values.size());
    visit_one(size);
    values.resize(static_cast<std::size_t>(size));
    for (Value& value : values) visit_one(value);
  }

 private:
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
    visit_one(number);
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
    Index rows = A.rows(), cols = A.cols();
    visit(rows, cols);
    if (loading_) A = SmallMatrix<S>(rows, cols);
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < rows; ++i) visit_one(A(i, j));
  }

  std::vector<double> numbers_;
  std::size_t next_ = 0;
  bool loading_ = false;
};

}  // namespace gridlops
