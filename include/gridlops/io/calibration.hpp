// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

// A calibration is a measurement of products in host memory, by which this process chooses between BLAS and
// the kernels of this library, A in columns and packed, and one pass and two. Until one of these functions is
// called, the choices are built in, so that they are the same wherever the processor has the same instruction
// set. Call them before the first operator is made: what chose one way before may choose another way then.
//
// It is kept in the file that the environment variable GRIDLOPS_CALIBRATION names, or else in
// ${XDG_CACHE_HOME:-$HOME/.cache}/gridlops/calibration-HASH.json, where HASH stands for the machine: its
// processor, the BLAS, the version of this library, and how many ranks share it. GRIDLOPS_CALIBRATION=off, or
// GRIDLOPS_KERNELS with a choice of its own, leaves the built-in choices. Rank 0 alone reads and writes the
// file, and all ranks take what it found, so that they choose alike. If they are not on machines of one kind,
// all keep the built-in choices. A file that cannot be read, is damaged, or is of another machine is no
// error: it is left out of account. `gridlops calibrate` also keeps rates for plans there, which these
// functions leave alone.

struct Calibration {
  std::string file;                     ///< empty: there is none, and none is wanted
  std::string note;                     ///< why something is not used or not kept; or empty
  std::array<std::string, 4> measured;  ///< by ScalarType: when, in UTC; empty: the choices are built in
  bool is_new = false;                  ///< something has been measured just now

  const std::string& when(ScalarType type) const { return measured[static_cast<std::size_t>(type)]; }
  /// "measured 2026-01-31T12:00:00Z", or "built in".
  std::string source_of_choices(ScalarType type) const {
    return when(type).empty() ? "built in" : "measured " + when(type);
  }
};

/// Lets this process choose by the calibration that was kept (collective over comm). It measures nothing.
GRIDLOPS_EXPORT Calibration load_calibration(Communicator& comm);

/// Measures products of one element type unless they are kept already, or anew, and keeps the figures; then
/// does as load_calibration() (collective over comm). It takes one or two seconds on all ranks at once. Where
/// no calibration is wanted, or its file could not be written, nothing is measured. A file that is no
/// calibration is never replaced, and one of another machine only anew. Figures of a machine that was so busy
/// that they differ are kept, but choices stay built in.
GRIDLOPS_EXPORT Calibration measure_calibration(Communicator& comm, ScalarType type, bool anew = false);

}  // namespace gridlops
