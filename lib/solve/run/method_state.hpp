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

/// A matrix of a solver's state, with its name in checkpoints.
template <Scalar T>
struct NamedMatrix {
  std::string name;
  DistMatrix<T> matrix;
};

/// The state of a method. The method describes it once, by naming its matrices and scalars. All handling of
/// state follows from this description: taking memory, showing the active columns, following them when they
/// are swapped, saving and loading, and reporting memory use. The named variables must outlive this object.
template <Scalar T>
class MethodState {
 public:
  /// domain: the space of x.
  explicit MethodState(const Space& domain) { vector("best", best_x_, domain); }

  // A method calls these in describe(). While the method iterates, its matrices are views of the active
  // columns, and its scalars have one entry per active column.

  /// The solution, a view of the caller's X.
  void solution(DistMatrix<T>& x) { solution_ = &x; }
  /// Another result in the caller's memory, with the partition of X.
  void result(const char* name, DistMatrix<T>& view, DistMatrix<T>& whole) {
    results_.push_back({name, &view, &whole, {}});
  }
  /// A matrix that is kept from one iteration to the next. stack: the spaces that `space` stacks, if it is a
  /// stack. Checkpoints store their rows separately, since the order of rows in a stack depends on the grid.
  void vector(const char* name, DistMatrix<T>& X, const Space& space, std::vector<Space> stack = {}) {
    vectors_.push_back({name, &X, space, std::move(stack), {}});
  }
  /// A matrix that is not kept between iterations.
  void scratch(DistMatrix<T>& X, const Space& space) { vectors_.push_back({"", &X, space, {}, {}}); }
  /// Scalars that are kept between iterations.
  void scalars(ColumnScalars& values) { scalars_.push_back({&values, {}}); }
  /// A number that is kept and belongs to no column, of any type that a StateArchive takes.
  template <class Value>
  void number(Value& value) {
    numbers_.push_back([&value](StateArchive& archive) { archive.visit(value); });
  }
  /// Such a number of columns, at most those of the batch.
  void count(Index& value) {
    numbers_.push_back([this, &value](StateArchive& archive) { archive.visit_count(value, batch_.total()); });
  }
  /// A condition on the numbers described before it: loading throws InputError unless fits(columns of the
  /// batch).
  void check(std::function<bool(Index columns)> fits) {
    numbers_.push_back([this, fits = std::move(fits)](StateArchive& archive) {
      archive.require(!archive.loading() || fits(batch_.total()));
    });
  }
  /// The number of elements for blocks with these numbers of local rows and columns.
  using Elements = std::function<Index(Index rows, Index columns)>;
  /// Other memory, of this size for rows in `space`.
  void memory(Buffer<T>& buffer, const Space& space, Elements elements) {
    memory_.push_back({&buffer, space, std::move(elements)});
  }
  /// A matrix that is kept and belongs to no column. It is requested once the numbers are loaded.
  void shared(const char* name, std::function<DistMatrix<T>()> matrix, std::vector<Space> stack = {}) {
    shared_.push_back({name, std::move(matrix), std::move(stack)});
  }

  // The run calls these.

  DistMatrix<T>& x() { return *solution_; }
  /// The best iterate so far, maintained by ColumnRun.
  DistMatrix<T>& best_x() { return best_x_; }

  /// The number of elements that this state takes on the rank at (row, col), for this many columns there.
  Index elements_at(int row, int col, Index columns) const;
  /// Takes all memory for a batch of X's columns. Exceptions are thrown on this rank only.
  void begin_batch(DistMatrix<T>& X, const ColumnBatch& batch);
  /// Keeps the scalars of the active columns, before others become active.
  void put_scalars_away(const ActiveColumns& columns);
  /// Gives the method views and scalars of these active columns.
  void show(const ActiveColumns& columns);
  /// Swaps columns.
  void swap(const ActiveColumns::Swaps& swaps);
  /// The number of matrices that lasting() returns.
  Index lasting_count() const;
  /// All matrices that are kept except X, with the columns of the batch in their current places.
  std::vector<NamedMatrix<T>> lasting();
  void visit(StateArchive& archive);

 private:
  struct Vector {
    const char* name;  // empty: not kept between iterations
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
    std::vector<double> all;  // of all columns of the batch
  };
  struct Memory {
    Buffer<T>* buffer;
    Space space;
    Elements elements;
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
  Buffer<T> spare_;  // one column, for swaps of several
  Partition batch_;
};

}  // namespace gridlops
