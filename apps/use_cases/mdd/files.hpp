// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "gridlops/ops/space.hpp"
#include "use_cases/mdd/data.hpp"
#include "use_cases/own_arrays.hpp"

namespace gridlops::program {

/// Reads the headers of --kernel and --data into the sizes of `arguments` and the type of its elements
/// (collective over world). Throws UsageError or InputError on all ranks unless the arrays fit each other.
void read_mdd_sizes(Communicator& world, MddArguments& arguments);

/// Reads the kernel (collective over the grid): each rank its slices of an array of frequencies. An array in
/// time is read and transformed some receivers at a time, of which each rank reads its share. Returns spectra
/// as fredholm() takes them.
template <Scalar R>
DistMatrix<std::complex<R>> read_kernel(const MddArguments& arguments, const Space& kernel);

/// A slice of this rank's group, by its number among them.
template <Scalar C>
using UseSlice = std::function<void(Index k, const ConstDistMatrix<C>& slice)>;

/// Reads spectra (collective over the grid): each rank its blocks of the slices of its group, a few at a
/// time. use() may throw on the ranks of a group alike; then all ranks throw.
template <Scalar R>
void read_slices(const MddArguments& arguments, const SliceGroups& groups,
                 const UseSlice<std::complex<R>>& use);

/// Reads the data into `data`, arrays of (samples, receivers) in this space (collective over the grid).
template <Scalar R>
void read_data(const MddArguments& arguments, const Space& space, DistMatrix<R>& data);

/// Reads the weights of pairs of a receiver and a shot, see pair_weights.hpp; no elements if there are none
/// (collective over the grid). Throws InputError on all members unless they fit the data.
Table read_pair_weights(const MddArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid);

}  // namespace gridlops::program
