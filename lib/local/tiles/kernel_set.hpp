// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gridlops/base/types.hpp"
#include "local/tiles/tile_kernels.hpp"

namespace gridlops {

/// yᵢ ← α Σₖ wₖ xᵢ₊ₖₛ + β yᵢ for i < n, with step s ≥ 1, or 0 if n = 0. The order of a sum depends on the
/// instruction set, on s, and on how many elements follow. An element of x whose weight is zero does not
/// count, even if it is NaN. Elements before the first non-zero weight and after the last are not read.
template <class R>
using Correlate = void (*)(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta,
                           R* y);

/// Correlates with weights of its own for each element, yᵢ ← α Σₖ wᵢₖ xᵢ₊ₖₛ + β yᵢ: those of neighbours lie
/// side by side, wᵢₖ = weights[i + k · apart]. x and y have numbers, or pairs of them where `parts` is 2:
/// then i, s and n count pairs. All elements of x are read.
template <class R>
using CorrelateNeighbours = void (*)(Index n, R alpha, const R* weights, Index width, Index apart,
                                     Index parts, const R* x, Index step, R beta, R* y);

/// Correlates like that where the weights of an element follow each other, wᵢₖ = weights[i · width + k], and
/// s = 1. The order of a sum depends on the width alone.
template <class R>
using CorrelateRows = void (*)(Index n, R alpha, const R* weights, Index width, Index parts, const R* x,
                               R beta, R* y);

/// yᵢ ← α Σₖ wₖ x(i + oₖ) + β yᵢ for i < n. Elements of x whose weight is zero are not read.
template <class R>
using AddStencil = void (*)(Index n, R alpha, const R* weights, const Index* offsets, Index terms, const R* x,
                            R beta, R* y);

/// The sample tᵢ before the time sᵢ + rᵢ, and how far behind it that is, for i < count. Times after `end`,
/// and NaN, count as `end`.
template <class R>
using FindArrivals = void (*)(Index count, const R* s, const R* r, R end, std::int32_t* t, R* behind);

/// Inner loops for one real type.
template <class R>
struct RealKernels {
  std::array<TileKernels<R>, 2> tiles;  ///< high tiles, and lower ones
  Correlate<R> correlate = nullptr;
  CorrelateNeighbours<R> correlate_neighbours = nullptr;
  CorrelateRows<R> correlate_rows = nullptr;
  AddStencil<R> add_stencil = nullptr;
  FindArrivals<R> find_arrivals = nullptr;
};

/// Inner loops for one instruction set.
struct KernelSet {
  const char* name = "";  ///< in GRIDLOPS_KERNELS
  const char* text = "";  ///< for people
  std::tuple<RealKernels<float>, RealKernels<double>> loops;
  /// With how many right-hand sides of f32, f64, c64 and c128, at most, products of an A in columns were
  /// faster than OpenBLAS with the same instruction set. Zeros: none was, or nobody measured it.
  std::array<Index, 4> most_forward{}, most_adjoint{};
  /// Kernels of OpenBLAS that need this instruction set.
  std::array<const char*, 3> blas_kernels{"", "", ""};

  /// Kernels for tiles of a matrix with this many rows: high tiles, unless lower ones hold it in clearly less
  /// memory.
  template <class R>
  const TileKernels<R>& tiles(Index rows) const {
    const auto& [high, low] = of<R>().tiles;
    const auto filled_up = [rows](Index height) { return (rows + height - 1) / height * height; };
    return 33 * filled_up(low.height) < 32 * filled_up(high.height) ? low : high;
  }
  template <class R>
  const RealKernels<R>& of() const {
    return std::get<RealKernels<R>>(loops);
  }
  /// Whether these loops replace BLAS where nobody measured this machine.
  bool is_usual() const { return most_forward[0] > 0; }
};

/// The sets that this processor supports. Each instruction set includes those before it. The first is the
/// baseline of the architecture.
const std::vector<KernelSet>& kernel_sets();

/// Whether this library's loops replace BLAS in products, and with which instruction set.
struct KernelChoice {
  enum class Use { where_faster, never, wherever_possible };
  Use use = Use::where_faster;
  const KernelSet* set = nullptr;  ///< one of kernel_sets()
};

/// The choice for a name: "auto" or nothing, "blas", "baseline" or the name of a set. Throws UsageError for a
/// name that this processor has no set of.
KernelChoice kernel_choice(const std::string& name);

/// The choice that the environment variable GRIDLOPS_KERNELS names, read once.
const KernelChoice& kernel_choice();

}  // namespace gridlops
