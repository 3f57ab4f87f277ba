// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/kept_bytes.hpp"
#include "gridlops/ops/space.hpp"

namespace gridlops {

/// How often an operator was applied, and the total number of columns. A normal product counts as one forward
/// and two adjoint applications.
struct OperatorActivity {
  Index forward_applications = 0;
  Index adjoint_applications = 0;
  Index forward_columns = 0;
  Index adjoint_columns = 0;
};

/// The products of an operator: apply(), apply_adjoint() and normal_product().
enum class ProductKind { forward, adjoint, normal };

/// A linear map from its domain to its range (A is range().dimension() × domain().dimension()), applied to
/// many columns at once. Both spaces are on one grid, and a model and its data have their columns on the same
/// axis, cut at the same places. Operators are immutable, but applying one uses memory that it keeps, and
/// scratch memory of its grid, so two threads must not apply operators on one grid at the same time.
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
  /// X: in domain(), Y: in range(), with the same column partition and any number of columns. X and Y must
  /// not overlap: throws UsageError, at the first application on all ranks, later only on the ranks whose
  /// blocks overlap. With β = 0 the old Y is not read. On a GPU the product is ordered, not finished, on
  /// return.
  /// Throws ShapeError on all ranks before sending data. At the first application, throws UsageError if the
  /// ranks disagree about it (GRIDLOPS_CHECK). The operator takes memory before it sends data, when it is
  /// first applied by itself, within others or within callers' operators, whenever it then meets more columns
  /// than before, and again where scratch memory was given back or did not suffice. If any rank runs out of
  /// memory, all throw OutOfMemory, and the caller may try again. If user code, such as a do_apply(), throws
  /// on one rank, all ranks throw that error once the whole operator has been applied. The failing rank must
  /// first finish the communication inside its own do_apply(): other ranks wait for it there.
  void apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const;

  /// X ← α Aᴴ Y + β X. In all other respects like apply().
  void apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const;

  /// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q (collective over the grid; idle ranks return at once): the products of a
  /// least-squares iteration that reads A once, if has_one_pass(). For other operators this applies A once
  /// and Aᴴ twice.
  /// P, U, V: in domain(); R, Q: in range(); all with the same column partition; none may overlap another.
  /// Memory, ordering and errors are as for apply().
  void normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                      DistMatrix<T>& U, DistMatrix<T>& V) const;

  /// The operator whose products these are, if this one only watches them; else this one. Functions that need
  /// more of a matrix than products, such as its rows, ask for it.
  virtual const LinearOperator& watched() const { return *this; }

  /// Whether normal_product() reads A from memory only once; the same on all ranks. Of an operator made of
  /// others: whether it does so for at least one of them (operator_algebra.hpp).
  virtual bool has_one_pass() const { return false; }

  /// The bytes of scratch memory that a product takes on this rank, with those of the operators that this one
  /// is made of. Callers' operators take none: those that they apply have scratch memory apart.
  Index scratch_bytes(ProductKind kind, const Partition& columns) const;

  /// Returns the bytes that the operator keeps on this rank once it has multiplied this many columns, with
  /// those of the operators that it is made of: matrices, tables, the results of functions given to
  /// local_operator(), and for products of matrices what product_workspace_bytes() says. They are known
  /// before they are taken. Parts that occur twice, or are shared, count once. The memory of Fourier
  /// transforms does not count, nor do operators of callers' classes.
  Index kept_bytes(const Partition& columns) const;
  /// Adds these bytes to those of other operators. Memory that they share counts once.
  void add_kept_bytes(KeptBytes& kept, const Partition& columns) const;

  /// Throws ShapeError, on all ranks, unless the model is in domain(), the data are in range(), and both have
  /// the same column partition. The message begins with `caller`, if given.
  void require_operands(const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
                        std::string_view caller = {}) const;

  const OperatorActivity& activity() const { return activity_; }

 protected:
  /// Throws ShapeError if no operator can connect the two spaces: their grids or column axes differ.
  LinearOperator(Space range, Space domain);

  // The library calls these only on members of the grid, with at least one column, and after checking the
  // operands.

  /// Computes normal_product() once its memory has been taken. The default applies A once and Aᴴ twice.
  virtual void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                                 DistMatrix<T>& U, DistMatrix<T>& V) const;
  /// Takes the memory that do_normal_product() needs, under the conditions of do_reserve(). The default
  /// reserves for both directions.
  virtual void do_reserve_normal_product(const Partition& columns) const;

 private:
  // The library calls these only on members of the grid, with at least one column, and after checking the
  // layouts.

  /// Sets up communication for do_apply() (Op::none) or do_apply_adjoint() (Op::adjoint) (collective over the
  /// grid). It is called repeatedly, each time before do_reserve(), so it must do nothing if everything is
  /// already set up. A rank that throws must first complete its part in everything that this function sends.
  /// A normal product connects both directions unless has_one_pass().
  virtual void do_connect(Op) const {}
  /// Takes the memory that do_apply() or do_apply_adjoint() needs for this column partition, and sends
  /// nothing. It is called on all ranks before they apply the operator to more columns than ever before, by
  /// itself or within others. If it throws on one rank, all ranks throw that error, and it is called again
  /// before the next application.
  virtual void do_reserve(Op, const Partition& /*columns*/) const {}
  /// Implements scratch_bytes() for an operator of the library. A normal product is asked for only if
  /// has_one_pass().
  virtual Index do_scratch_bytes(ProductKind, const Partition& /*columns*/) const { return 0; }
  /// Implements add_kept_bytes(). The default adds nothing.
  virtual void do_add_kept_bytes(KeptBytes& /*kept*/, const Partition& /*columns*/) const {}
  virtual void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const = 0;
  virtual void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const = 0;

  /// Whether do_apply() may throw on a single rank, as user code may.
  virtual bool runs_callers_code() const { return true; }

  /// The agreement of the ranks before they apply the operator: that they all apply it, and the number of
  /// columns of each part that memory has been taken for.
  struct Preparation {
    ProductKind kind;
    // The serial number of the memory if this is an outermost operator of the library's; else how often
    // memory was lost on the grid, negated.
    Index scratch;
    bool is_agreed = false;
    std::vector<Index> most{};
  };
  Preparation& preparation(ProductKind kind, Index scratch) const;
  template <class Name, class Test>
  bool prepare(ProductKind kind, const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
               Name&& name_factors, Test&& test) const;
  /// Connects and takes memory; called within an agreement.
  void reserve(ProductKind kind, const Partition& columns) const;
  template <class Multiply>
  void carry_out(Multiply&& multiply) const;

  Space range_, domain_;
  mutable OperatorActivity activity_;
  mutable std::vector<Preparation> prepared_;
};

/// A shared operator. Take an OperatorPtr to keep an operator, even if only inside another operator. Take a
/// const LinearOperator& to use it during the call.
template <Scalar T>
using OperatorPtr = std::shared_ptr<const LinearOperator<T>>;

}  // namespace gridlops
