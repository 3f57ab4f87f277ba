// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <optional>
#include <string>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/space.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

/// Lengths in metres, times in seconds. Names are those of the axes: models lie along x, data along y. The
/// data are generated, or those of two files; read_mdd_sizes() then sets nx, ny, frequencies and sources, and
/// whether the kernel is complex.
struct MddArguments {
  UseCaseArguments common;
  Index nx = 121, ny = 201;
  double ox = -300, dx = 5, oy = -500, dy = 5;
  Index samples = 800, half_wavelet = 40, frequencies = 400;
  double interval = 0.002, frequency = 20;
  Index sources = 1;
  std::string domain = "frequency";
  bool independent = false;
  bool groups = false;
  std::optional<double> compress;  ///< the error of each frequency's kernel that compression may make
  bool on_disk = false;            ///< kernels, of which a rank takes `memory` bytes with everything else
  Index memory = 0;                ///< 0: what the machine leaves, which is not kept if that is too little
  bool memory_is_given = false;
  std::string scratch;                               ///< the directory of the disk; empty: the usual one
  std::string receiver_positions, source_positions;  ///< names of arrays, by which compression orders
  std::string kernel, data;                          ///< names of arrays; empty: generated
  std::string weights;             ///< name of an array of the weights of pairs; empty: all are 1
  bool kernel_is_complex = false;  ///< the file has spectra, not traces
  bool counts_one_shot = false;    ///< own data, and results, of one shot have a third dimension, of 1
  Index own_samples = 0, first_sample = 0, asked_frequencies = 0;

  bool has_own_data() const { return !kernel.empty(); }
  /// How much of spectra in a file a rank reads together, at least a frequency.
  Index bytes_read_together() const {
    constexpr Index most = Index{32} << 20;
    return on_disk ? std::min(most, memory / 16) : most;
  }
  /// The samples of the time axis, and which of them is time 0. Generated data have negative times, too.
  Index axis_samples() const { return has_own_data() ? own_samples : 2 * samples - 1; }
  Index time_zero() const { return has_own_data() ? first_sample : samples - 1; }
  /// The dims of results, or own data, whose arrays of each shot have these.
  Dims dims_in_file(const Dims& of_shot) const {
    std::vector<Partition> cuts = of_shot.cuts();
    if (counts_one_shot) cuts.push_back(Partition::with_sizes({1}));
    return Dims(cuts);
  }
};

/// Returns the spectra of reflections, from sources at all x to receivers at all y, scaled for the integrals
/// over time (collective over the grid).
template <Scalar R>
DistMatrix<std::complex<R>> make_kernel(const MddArguments& arguments, const Space& kernel);

/// The model of each virtual source: one reflection of a source that lies on the line of the model. Sources
/// are evenly spaced around its middle.
template <Scalar R>
void fill_model(const MddArguments& arguments, const Space& space, DistMatrix<R>& model);

}  // namespace gridlops::program
