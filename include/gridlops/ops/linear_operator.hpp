// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/space.hpp"

namespace gridlops {

/// How often an operator was used, with the columns of all applications added up. A normal product is one
/// forward and two adjoint applications.
struct OperatorActivity {
  Index forward_applications = 0;
  Index adjoint_applications = 0;
  Index forward_columns = 0;
  Index adjoint_columns = 0;
};

/// A linear map from its domain to its range (A is range().dimension() × domain().dimension()) that is
/// applied to many columns at once. Both spaces are on one grid, and a model and its data have their columns
/// on the same axis, cut at the same places. Operators are immutable; applying one may use scratch memory of
/// its own, so it is not for two threads at a time.
template <Scalar T>
class GRIDLOPS_EXPORT LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  LinearOperator(const LinearOperator&) = delete;
  LinearOperator& operator=(const LinearOperator&) = delete;

  const Space& domain() const { return domain_; }
  const Space& range() const { return range_; }
  Index rows() const { return range_.dimension(); }
  Index cols() const { return domain_.dimension(); }

  /// Y ← α A X + β Y (collective over the grid; idle ranks return at once).
  /// X: in domain(), Y: in range(), the same column partition, any number of columns. They must not overlap:
  /// throws UsageError, on all ranks at the first application, later on those where they do.
  /// With β = 0 the old Y is not read. On a GPU the product is ordered, not finished, on
  /// return.
  /// Throws ShapeError on all ranks before data are sent, and at the first application UsageError if the
  /// ranks disagree about it (GRIDLOPS_CHECK). Scratch memory is taken before data are sent, the first time
  /// that there are so many columns: if there is not enough on some rank, all throw OutOfMemory, and may try
  /// again. What a do_apply() or a function of the caller's throws on one rank all ranks throw, but not
  /// before all else that the operator is made of has been applied. By then that rank must have taken its
  /// part in what do_apply() itself communicates: other ranks wait for it there.
  void apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const;

  /// X ← α Aᴴ Y + β X. Everything else is as for apply().
  void apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const;

  /// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q (collective over the grid; idle ranks return at once): the products of an
  /// iteration of least squares that reads A once, if has_one_pass(). Other operators are applied once, and
  /// their adjoint twice.
  /// P, U, V: in domain(); R, Q: in range(); all with the same column partition; none may overlap another.
  /// Memory, order and errors are as for apply().
  void normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                      DistMatrix<T>& U, DistMatrix<T>& V) const;

  /// Whether normal_product() reads A from memory once; the same on all ranks.
  virtual bool has_one_pass() const { return false; }

  /// Throws ShapeError, on all ranks, unless the model is in domain(), the data are in range(), and their
  /// columns are cut at the same places. The text begins with the caller's name, if it gives one.
  void require_operands(const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
                        std::string_view caller = {}) const;

  const OperatorActivity& activity() const { return activity_; }

 protected:
  /// Throws ShapeError if the two spaces cannot be an operator's: different grids or column axes.
  LinearOperator(Space range, Space domain);

  // These are called with at least one column, on members of the grid only, and after operands were checked.

  /// Does what normal_product() does once its memory is there; by default one product and two adjoint ones.
  virtual void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                                 DistMatrix<T>& U, DistMatrix<T>& V) const;
  /// Takes the memory that do_normal_product() needs, on the conditions of do_reserve(); by default that of
  /// both directions.
  virtual void do_reserve_normal_product(const Partition& columns) const;

 private:
  // These are called with at least one column, on members of the grid only, and after layouts were checked.

  /// Sets up what do_apply() (Op::none) or do_apply_adjoint() (Op::adjoint) needs to communicate (collective
  /// over the grid), before do_reserve(). It is called again and again, so it does nothing where all is set
  /// up. A rank that throws must have taken its part in all that it sends here. A normal product connects in
  /// both directions unless has_one_pass().
  virtual void do_connect(Op) const {}
  /// Takes the memory that do_apply() or do_apply_adjoint() needs for columns that are cut like this, and
  /// sends nothing. It is called on all ranks before they apply the operator to more columns than ever. What
  /// it throws on one rank all ranks throw. It is then called again before the next application.
  virtual void do_reserve(Op, const Partition& /*columns*/) const {}
  virtual void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const = 0;
  virtual void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const = 0;

  /// Whether do_apply() may throw on one rank alone, as code can that is not this library's own.
  virtual bool runs_callers_code() const { return true; }

  enum class Product { forward, adjoint, normal };
  /// What ranks have agreed on before they applied the operator: that they do it, and memory for so many
  /// columns of each part.
  struct Preparation {
    bool is_agreed = false;
    std::vector<Index> most;
  };
  template <class Name, class Test>
  bool prepare(Product product, const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
               Name&& name_factors, Test&& test) const;
  /// Connects and takes memory, within an agreement.
  void reserve(Product product, const Partition& columns) const;
  template <class Multiply>
  void carry_out(Multiply&& multiply) const;

  Space range_, domain_;
  mutable OperatorActivity activity_;
  mutable std::array<Preparation, 3> prepared_;  // by Product
};

/// A shared operator. A function that keeps an operator, if only in one that it makes of it, takes an
/// OperatorPtr; one that uses it until it returns takes a const LinearOperator&.
template <Scalar T>
using OperatorPtr = std::shared_ptr<const LinearOperator<T>>;

}  // namespace gridlops
