// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// What operators that matrix_mult() makes have in common. On this rank:
class StoredMatrix {
 public:
  /// See block_hash().
  virtual std::uint64_t hash() const = 0;

  /// With GRIDLOPS_CHECK=all throws UsageError, on this rank, if the caller's block has other elements than
  /// when the operator was made, or than when a change of it was last noted.
  virtual void require_unchanged() const = 0;
  /// Notes that the caller has changed the block. Throws UsageError, on this rank, if the operator owns it.
  virtual void note_change() const = 0;
  /// Makes what the operator keeps of the block be made anew. All ranks have noted the change.
  virtual void renew_copies() const = 0;

 protected:
  ~StoredMatrix() = default;
};

/// The matrix that an operator was given. A view stays the caller's, who may change its block.
template <Scalar T>
class GivenMatrix {
 public:
  explicit GivenMatrix(DistMatrix<T> A);

  const ConstDistMatrix<T>& matrix() const { return A_; }
  bool is_callers() const { return !A_.owns_block(); }
  void require_unchanged() const;
  void note_change();

  /// Of a block that the operator owns, and of which it has a copy: see DistMatrix.
  void discard_local_columns(Index count) { A_.discard_local_columns(count); }
  /// Keeps nothing of such a block but its shape.
  void discard();

 private:
  void note_elements();

  DistMatrix<T> A_;
  std::optional<std::uint64_t> hash_;  // with GRIDLOPS_CHECK=all
};

}  // namespace gridlops
