// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

// A calibration is a measurement of products in host memory. By it this process chooses between BLAS and the
// kernels of this library, between A in columns and packed, and between one pass and two. Until one of these
// functions is called, the library uses built-in choices, which are the same on all processors with the same
// instruction set. Call these functions before making the first operator: the same product may be computed
// another way afterwards.
//
// The file of a calibration is the one that the environment variable GRIDLOPS_CALIBRATION names, or else
// ${XDG_CACHE_HOME:-$HOME/.cache}/gridlops/calibration-HASH.json, where HASH stands for the machine: its
// processor, the BLAS, the version of this library, and the number of ranks that share it.
// GRIDLOPS_CALIBRATION=off, or GRIDLOPS_KERNELS with a choice of its own, keeps the built-in choices. Only
// rank 0 reads and writes the file. All ranks take what it found, so that they choose alike. If the ranks run
// on different kinds of machines, all keep the built-in choices. A file that cannot be read, is damaged, or
// belongs to another machine is not an error: it is ignored. `gridlops calibrate` also keeps rates for plans
// there; these functions leave them alone.

struct Calibration {
  std::string file;  ///< empty: there is none, and none is wanted
  std::string note;  ///< why something is not used or not kept; empty if there is nothing to say
  std::array<std::string, 4> measured;  ///< by ScalarType: when, in UTC; empty: the choices are built in
  bool is_new = false;                  ///< this call has measured something

  const std::string& when(ScalarType type) const { return measured[static_cast<std::size_t>(type)]; }
  /// "measured 2026-01-31T12:00:00Z", or "built in".
  std::string source_of_choices(ScalarType type) const {
    return when(type).empty() ? "built in" : "measured " + when(type);
  }
};

/// Makes this process choose by the stored calibration (collective over comm). Measures nothing.
/// Reasons: docs/decisions/0020-calibration.md.
GRIDLOPS_EXPORT Calibration load_calibration(Communicator& comm);

/// Measures products of one element type, unless a measurement is stored already and `anew` is false; stores
/// the figures, then does as load_calibration() (collective over comm). Takes one or two seconds on all ranks
/// at once. Measures nothing if no calibration is wanted, or if its file could not be written. Never replaces
/// a file that is not a calibration, and replaces one of another machine only if `anew`. If the machine was
/// so busy that the figures differ, they are stored, but the choices stay built in.
GRIDLOPS_EXPORT Calibration measure_calibration(Communicator& comm, ScalarType type, bool anew = false);

}  // namespace gridlops
