// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "gridlops/local/matrix_view.hpp"
#include "local/products/narrow_matrix.hpp"

namespace gridlops {

/// A tile of a compressed matrix: Σ over precisions of U Vᴴ, or the tile itself, rounded to one precision.
/// The bytes are those of a NarrowMatrix, in host memory.
struct StoredTile {
  using Bytes = std::array<std::vector<std::byte>, precisions>;

  Index rows = 0, cols = 0;
  std::optional<Precision> dense{};       ///< of a tile that is stored as it is, which is U
  std::array<Index, precisions> ranks{};  ///< else the vectors of each precision
  Bytes U{}, V{};
  double error_squared = 0;  ///< ‖A − Ã‖_F² for the tile as it is stored

  Index bytes() const;
};

/// A in the fewest bytes that bring ‖A − Ã‖_F to at most `allowed`, which may be 0. A must be finite.
///
/// The range of A by a randomised method, block by block until the rest is small (Martinsson, Voronin: A
/// randomized blocked algorithm for efficiently computing rank-revealing factorizations of matrices, SIAM J.
/// Sci. Comput. 38, 2016), then its singular vectors. A vector of singular value σ may be left out, at the
/// error σ², or stored in a precision with unit roundoff u, at the error 2 · 0.18 σ²u², which rounding has on
/// average. The choice for all vectors minimises the bytes for that sum of errors. The error of the result
/// is computed from its definition.
template <Scalar T>
StoredTile compress_tile(MatrixView<const Accumulator<T>> A, double allowed);

}  // namespace gridlops
