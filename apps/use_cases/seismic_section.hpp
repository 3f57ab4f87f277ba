// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gridlops::program {

/// The reflectivity at a lateral position and a depth, in metres: folded layers that end at an unconformity,
/// flat ones and a channel above it, and a graben between two faults through all of them. It is of order 1,
/// and a pure function. The folds are so steep that they need all lateral wavelengths down to some 60 m.
double reflectivity(double position, double depth);

}  // namespace gridlops::program
