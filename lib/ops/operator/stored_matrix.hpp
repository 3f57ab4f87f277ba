// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// An operator that multiplies by a block which may be the caller's.
class SeesChanges {
 public:
  /// With GRIDLOPS_CHECK=all throws UsageError, on this rank, if the elements of the caller's block have
  /// changed since the operator was made, or since a change was last noted.
  virtual void require_unchanged() const = 0;

 protected:
  ~SeesChanges() = default;
};

/// The interface common to operators made by matrix_mult(). On this rank:
class StoredMatrix : public SeesChanges {
 public:
  /// See block_hash().
  virtual std::uint64_t hash() const = 0;

  /// Notes that the caller has changed the block. Throws UsageError, on this rank, if the operator owns it.
  virtual void note_change() const = 0;
  /// Updates the operator's copies of the block. All ranks have noted the change.
  virtual void renew_copies() const = 0;

 protected:
  ~StoredMatrix() = default;
};

/// The matrix that was given to an operator. A view still belongs to the caller, who may change its block.
template <Scalar T>
class GivenMatrix {
 public:
  explicit GivenMatrix(DistMatrix<T> A);

  const ConstDistMatrix<T>& matrix() const { return A_; }
  bool is_callers() const { return A_.is_callers(); }
  void require_unchanged() const;
  void note_change();

  /// For a block that the operator owns and has a copy of: see DistMatrix.
  void discard_local_columns(Index count) { A_.discard_local_columns(count); }
  /// Frees such a block and keeps only its shape.
  void discard();

 private:
  void note_elements();

  DistMatrix<T> A_;
  std::optional<std::uint64_t> hash_;  // with GRIDLOPS_CHECK=all
};

}  // namespace gridlops
