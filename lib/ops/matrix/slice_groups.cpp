// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/slice_groups.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "local/products/packed_matrix.hpp"
#include "ops/matrix/product_work.hpp"

namespace gridlops {

namespace {

/// The seconds of a product with a slice and of one with its adjoint, on the rank that has the largest block.
double seconds_of(const ProductShape& slice, GridShape grid, const MachineModel& machine) {
  if (slice.nrhs == 0) return 0;
  const ProductFormulas formulas(slice, grid);
  const auto bytes = [&](Index elements) { return static_cast<double>(elements * size_of(slice.type)); };
  double seconds = 0;
  for (const bool adjoint : {false, true}) {
    const RankWork work = formulas.product(Algorithm::stationary_a, adjoint, 0, 0);
    seconds += std::max(work.flops * machine.seconds_per_flop[static_cast<std::size_t>(slice.type)],
                        bytes(work.read) * machine.seconds_per_read_byte);
    for (const Exchange& exchange : work.exchanges)
      seconds += machine.seconds(exchange.operation, exchange.in_row ? grid.cols : grid.rows, exchange.calls,
                                 bytes(exchange.moved));
  }
  return seconds;
}

void require_slices(const std::vector<RankGroup>& groups, std::size_t slices) {
  Index shared = 0;
  for (const RankGroup& group : groups) {
    require<UsageError>(group.shape.rows > 0 && group.shape.cols > 0 && group.slices >= 0, "a group of ",
                        group.shape.rows, "x", group.shape.cols, " ranks that share ", group.slices,
                        " slices is impossible; a group has ranks, and slices cannot be negative");
    shared += group.slices;
  }
  require<UsageError>(shared == static_cast<Index>(slices), "groups of ranks share ", shared,
                      " slices, but there are ", slices,
                      "; every slice belongs to one group; divide_ranks() finds groups");
}

/// A shape that a group may have, and on it the seconds of all slices before each slice.
struct Candidate {
  GridShape shape;
  std::vector<double> before;

  double seconds(Index begin, Index end) const { return before[at(end)] - before[at(begin)]; }
};

std::vector<Candidate> candidates_of(const std::vector<ProductShape>& slices, int ranks,
                                     const MachineModel& machine) {
  std::vector<Candidate> candidates;
  for (int size = 1; size <= ranks; ++size) {
    for (const GridShape shape : grids_of(size)) {
      Candidate candidate{shape, {0}};
      std::map<std::tuple<Index, Index, Index, ScalarType>, double> known;
      for (const ProductShape& slice : slices) {
        const auto [place, is_new] = known.try_emplace({slice.rows, slice.cols, slice.nrhs, slice.type}, 0);
        if (is_new) place->second = seconds_of(slice, shape, machine);
        candidate.before.push_back(candidate.before.back() + place->second);
      }
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

/// The last group of a division of the first slices, and the number of ranks of the whole division.
struct Division {
  int ranks = std::numeric_limits<int>::max();
  int size = 0;
  Index first_slice = 0;
};

/// For each number of first slices, the division with the fewest ranks in which no group takes longer than
/// `bound`. A group takes as many slices as the bound allows, since fewer slices never need more ranks.
std::vector<Division> fewest_ranks(const std::vector<Candidate>& candidates, Index slices, double bound) {
  std::vector<Division> best(at(slices + 1));
  best[0].ranks = 0;
  std::vector<Index> first(candidates.size(), 0);
  for (Index end = 1; end <= slices; ++end) {
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      Index& begin = first[k];
      while (candidates[k].seconds(begin, end) > bound) ++begin;
      const int size = candidates[k].shape.size(), before = best[at(begin)].ranks;
      if (begin == end || before > std::numeric_limits<int>::max() - size) continue;
      if (before + size < best[at(end)].ranks) best[at(end)] = {before + size, size, begin};
    }
  }
  return best;
}

/// The shape of this many ranks that takes the fewest seconds for slices begin … end − 1.
GridShape fastest(const std::vector<Candidate>& candidates, int size, Index begin, Index end) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (candidate.shape.size() == size &&
        (best == nullptr || candidate.seconds(begin, end) < best->seconds(begin, end)))
      best = &candidate;
  return best->shape;
}

/// The place of a group: its number, and its first rank and slice.
struct GroupPlace {
  int number = 0, rank = 0;
  Index slice = 0;
};

std::optional<GroupPlace> group_of(const std::vector<RankGroup>& groups, int rank) {
  GroupPlace place;
  for (const RankGroup& group : groups) {
    if (rank < place.rank + group.shape.size()) return place;
    ++place.number;
    place.rank += group.shape.size();
    place.slice += group.slices;
  }
  return {};
}

}  // namespace

std::vector<double> group_seconds(const std::vector<ProductShape>& slices,
                                  const std::vector<RankGroup>& groups, const MachineModel& machine) {
  require_slices(groups, slices.size());
  std::vector<double> seconds;
  std::size_t slice = 0;
  for (const RankGroup& group : groups) {
    seconds.push_back(0);
    for (Index k = 0; k < group.slices; ++k)
      seconds.back() += seconds_of(slices[slice++], group.shape, machine);
  }
  return seconds;
}

Storage faster_storage(const SliceGroups& groups) {
  Index packed = 0, all = 0;
  std::size_t slice = 0;
  for (const RankGroup& group : groups.groups()) {
    for (Index k = 0; k < group.slices; ++k) {
      const ProductShape& shape = groups.slices()[slice++];
      const Index rows = Partition::balanced(shape.rows, group.shape.rows).largest(),
                  cols = Partition::balanced(shape.cols, group.shape.cols).largest();
      all += rows * cols;
      if (packed_is_faster(shape.type, rows, cols, shape.nrhs, kernel_choice())) packed += rows * cols;
    }
  }
  return 2 * packed > all ? Storage::packed : Storage::columns;
}

// The bound on the time of a group is bisected. For each bound a dynamic program over the slices finds the
// fewest ranks.
std::vector<RankGroup> divide_ranks(const std::vector<ProductShape>& slices, int ranks,
                                    const MachineModel& machine) {
  require<UsageError>(ranks > 0, "slices cannot be divided among ", ranks, " ranks; at least one is needed");
  const auto count = static_cast<Index>(slices.size());
  const std::vector<Candidate> candidates = candidates_of(slices, ranks, machine);
  double too_short = 0, long_enough = candidates.front().before.back();
  std::vector<Division> best = fewest_ranks(candidates, count, long_enough);
  constexpr double precision = 1e-9;
  while (long_enough - too_short > precision * long_enough) {
    const double middle = too_short + (long_enough - too_short) / 2;
    std::vector<Division> division = fewest_ranks(candidates, count, middle);
    if (division.back().ranks > ranks) {
      too_short = middle;
    } else {
      long_enough = middle;
      best = std::move(division);
    }
  }
  std::vector<RankGroup> groups;
  for (Index end = count; end > 0; end = best[at(end)].first_slice) {
    const Division& last = best[at(end)];
    groups.push_back({fastest(candidates, last.size, last.first_slice, end), end - last.first_slice});
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

SliceGroups::SliceGroups(std::shared_ptr<const ProcessGrid> grid, std::vector<ProductShape> slices,
                         std::vector<RankGroup> groups)
    : grid_(std::move(grid)), slices_(std::move(slices)), groups_(std::move(groups)) {
  agree(grid_, "making groups of ranks", [&](Agreement& agreement) {
    std::string shapes, sizes;
    for (const ProductShape& slice : slices_) shapes += message(" ", slice.rows, "x", slice.cols);
    for (const RankGroup& group : groups_)
      sizes += message(" ", group.shape.rows, "x", group.shape.cols, ":", group.slices);
    agreement.on("the slices", shapes).on("the groups", sizes);
    require_slices(groups_, slices_.size());
    for (const ProductShape& slice : slices_)
      require<UsageError>(slice.rows >= 0 && slice.cols >= 0, "a slice cannot be ", slice.rows, " x ",
                          slice.cols, "; its sizes are at least 0");
    Index needed = 0;
    for (const RankGroup& group : groups_) needed += Index{group.shape.rows} * group.shape.cols;
    require<UsageError>(needed <= grid_->shape().size(), "the groups need ", needed,
                        " ranks, but the grid has ", grid_->shape().size(),
                        "; start more ranks or make smaller groups");
  });
  place();
  own_grid_ = std::make_shared<const ProcessGrid>(GridShape{}, grid_->backend());
  if (!grid_->is_member()) return;
  const int rank = grid_->comm().rank();
  const std::optional<GroupPlace> mine = group_of(groups_, rank);
  const std::unique_ptr<Communicator> comm =
      grid_->comm().split(mine ? std::optional(mine->number) : std::nullopt, rank);
  if (!mine) return;
  const RankGroup& group = groups_[at(mine->number)];
  own_slices_ = {mine->slice, group.slices};
  own_grid_ = std::make_shared<const ProcessGrid>(*comm, group.shape, grid_->backend());
}

/// Finds the rows of all ranks.
void SliceGroups::place() {
  const auto ranks = at(grid_->shape().size());
  models_.rows.resize(ranks);
  data_.rows.resize(ranks);
  std::size_t slice = 0, first_rank = 0;
  Index models_before = 0, data_before = 0;
  for (const RankGroup& group : groups_) {
    const auto [P, Q] = group.shape;
    for (Index k = 0; k < group.slices; ++k) {
      const ProductShape& shape = slices_[slice++];
      const Partition data = Partition::nested(Partition::balanced(shape.rows, P), Q),
                      models = Partition::nested(Partition::balanced(shape.cols, Q), P);
      for (int part = 0; part < P * Q; ++part) {
        const std::size_t holds_data = first_rank + at(part),
                          holds_models = first_rank + at(part % P * Q + part / P);
        data_.rows[holds_data].push_back({data_before + data.begin(part), data.size(part)});
        models_.rows[holds_models].push_back({models_before + models.begin(part), models.size(part)});
      }
      data_before += shape.rows;
      models_before += shape.cols;
    }
    first_rank += at(group.shape.size());
  }
  for (GroupedSpace* const side : {&models_, &data_}) {
    std::vector<Index> sizes;
    for (const std::vector<Range>& rows : side->rows) {
      sizes.push_back(0);
      for (const Range& range : rows) sizes.back() += range.size;
    }
    side->space = {grid_, {Axis::all, Partition::with_sizes(sizes)}};
  }
}

template <Scalar T>
std::vector<DistMatrix<T>> allocate_slices(const SliceGroups& groups) {
  std::vector<DistMatrix<T>> matrices;
  const auto allocate = [&] {
    const Range own = groups.own_slices();
    for (Index f = own.begin; f < own.end(); ++f) {
      const ProductShape& slice = groups.slices()[at(f)];
      matrices.emplace_back(groups.own_grid(), matrix_layout(Algorithm::stationary_a, *groups.own_grid(),
                                                             slice.rows, slice.cols));
    }
  };
  if (groups.grid()->is_member()) attempt(groups.grid()->comm(), allocate);
  return matrices;
}

#define GRIDLOPS_INSTANTIATE(T) template std::vector<DistMatrix<T>> allocate_slices(const SliceGroups&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
