// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "solve/batches.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/run/active_columns.hpp"

namespace gridlops {

/// A matrix of a solver's state, under the name that it has in checkpoints.
template <Scalar T>
struct NamedMatrix {
  std::string name;
  DistMatrix<T> matrix;
};

/// The state of a method as the method describes it, once, by naming its matrices and scalars. All that is
/// done with state follows from that: taking memory, showing the active columns, following them when they
/// change places, saving and loading, and saying how much memory it is. What was named must outlive this.
template <Scalar T>
class MethodState {
 public:
  /// domain: where x lies.
  explicit MethodState(const Space& domain) { vector("best", best_x_, domain); }

  // A method calls these in describe(). While it iterates its matrices are views of the active columns, and
  // its scalars have one entry for each of these.

  /// The solution, a view of the caller's X.
  void solution(DistMatrix<T>& x) { solution_ = &x; }
  /// Another result in the caller's memory, cut as X is.
  void result(const char* name, DistMatrix<T>& view, DistMatrix<T>& whole) {
    results_.push_back({name, &view, &whole, {}});
  }
  /// A matrix that lasts from one iteration to the next. stack: the spaces that `space` is a stack of, if it
  /// is one. Checkpoints have their rows apart, since the order of rows in a stack depends on the grid.
  void vector(const char* name, DistMatrix<T>& X, const Space& space, std::vector<Space> stack = {}) {
    vectors_.push_back({name, &X, space, std::move(stack), {}});
  }
  /// A matrix that does not last.
  void scratch(DistMatrix<T>& X, const Space& space) { vectors_.push_back({"", &X, space, {}, {}}); }
  /// Scalars that last.
  void scalars(ColumnScalars& values) { scalars_.push_back({&values, {}}); }
  /// A number that lasts and belongs to no column, of any type that a StateArchive takes.
  template <class Value>
  void number(Value& value) {
    numbers_.push_back([&value](StateArchive& archive) { archive.visit(value); });
  }
  /// Other memory, with so many elements for blocks with so many local rows in `space` and so many columns.
  void memory(Buffer<T>& buffer, const Space& space, Index (*elements)(Index rows, Index columns)) {
    memory_.push_back({&buffer, space, elements});
  }
  /// A matrix that lasts and belongs to no column. It is asked for once the numbers are loaded.
  void shared(const char* name, std::function<DistMatrix<T>()> matrix, std::vector<Space> stack = {}) {
    shared_.push_back({name, std::move(matrix), std::move(stack)});
  }

  // The run calls these.

  DistMatrix<T>& x() { return *solution_; }
  /// The best iterate so far, which ColumnRun keeps.
  DistMatrix<T>& best_x() { return best_x_; }

  /// The elements that this takes on the rank at (row, col), for so many columns there.
  Index elements_at(int row, int col, Index columns) const;
  /// Takes all memory for a batch of X's columns. What it throws is this rank's alone.
  void begin_batch(DistMatrix<T>& X, const ColumnBatch& batch);
  /// Keeps the scalars of the active columns, before others become active.
  void put_scalars_away(const ActiveColumns& columns);
  /// Gives the method views and scalars of these active columns.
  void show(const ActiveColumns& columns);
  /// Changes the places of columns.
  void swap(const ActiveColumns::Swaps& swaps);
  /// How many lasting() returns.
  Index lasting_count() const;
  /// All matrices that last but X, with the columns of the batch where they lie.
  std::vector<NamedMatrix<T>> lasting();
  void visit(StateArchive& archive);

 private:
  struct Vector {
    const char* name;  // empty: does not last
    DistMatrix<T>* view;
    Space space;
    std::vector<Space> stack;
    Buffer<T> memory;
  };
  struct Result {
    const char* name;
    DistMatrix<T>* view;
    DistMatrix<T>* whole;
    DistMatrix<T> of_batch;
  };
  struct Scalars {
    ColumnScalars* active;
    std::vector<double> all;  // of the batch
  };
  struct Memory {
    Buffer<T>* buffer;
    Space space;
    Index (*elements)(Index, Index);
  };
  struct Shared {
    const char* name;
    std::function<DistMatrix<T>()> matrix;
    std::vector<Space> stack;
  };

  static DistMatrix<T> view(const Vector& vector, const Partition& columns);

  DistMatrix<T>* solution_ = nullptr;
  DistMatrix<T> best_x_;
  DistMatrix<T> x_of_batch_;
  std::list<Vector> vectors_;
  std::list<Result> results_;
  std::list<Scalars> scalars_;
  std::vector<std::function<void(StateArchive&)>> numbers_;
  std::vector<Memory> memory_;
  std::vector<Shared> shared_;
  Buffer<T> spare_;  // one column, for changes of places
  Partition batch_;
};

}  // namespace gridlops
