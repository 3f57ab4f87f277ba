// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "command_line/console.hpp"
#include "gridlops/io/calibration.hpp"

namespace gridlops::bench {

namespace {

/// The numbers of the lists, in the order of list_names(). The last list varies fastest.
enum List : std::size_t { grids, transports, types, rows, cols, nrhs, algorithms, storages, number_of_lists };

/// The number of an entry in each list.
using Entries = std::array<std::size_t, number_of_lists>;

Entries lengths_of(const Cases& cases) {
  return {cases.grids.size(), cases.transports.size(), cases.types.size(),      cases.rows.size(),
          cases.cols.size(),  cases.nrhs.size(),       cases.algorithms.size(), cases.storages.size()};
}

std::vector<std::size_t> zipped_lists(const Cases& cases, const Entries& lengths) {
  std::vector<std::size_t> lists;
  for (std::size_t list = 0; list < number_of_lists; ++list) {
    if (std::count(cases.zipped.begin(), cases.zipped.end(), list_names()[list]) == 0) continue;
    lists.push_back(list);
    if (lengths[list] != lengths[lists.front()]) {
      throw UsageError(fmt::format(
          "lists that run side by side are equally long, but --{} has {} entries and --{} has {}",
          list_names()[lists.front()], lengths[lists.front()], list_names()[list], lengths[list]));
    }
  }
  return lists;
}

/// The lists, with the default grid if the user names none.
Cases completed(Cases cases, int ranks) {
  if (cases.grids.empty()) cases.grids.push_back(near_square(ranks));
  return cases;
}

/// All combinations of the entries. Zipped lists advance together.
std::vector<Entries> combinations(const Cases& cases) {
  const Entries lengths = lengths_of(cases);
  const std::vector<std::size_t> zipped = zipped_lists(cases, lengths);
  std::vector<Entries> all;
  Entries at{};
  for (std::size_t list = number_of_lists; list > 0;) {
    const auto is_with_first = [&](std::size_t other) { return at[other] == at[zipped.front()]; };
    if (list == number_of_lists && std::all_of(zipped.begin(), zipped.end(), is_with_first))
      all.push_back(at);
    if (++at[list - 1] < lengths[list - 1]) {
      list = number_of_lists;
    } else {
      at[--list] = 0;
    }
  }
  return all;
}

/// The case. Chooses the algorithm and the storage if the user left them open.
Case resolved(const Cases& cases, const Entries& at, const std::shared_ptr<const ProcessGrid>& grid) {
  const ProductShape shape{cases.rows[at[rows]], cases.cols[at[cols]], cases.nrhs[at[nrhs]],
                           cases.types[at[types]]};
  Algorithm algorithm = cases.algorithms[at[algorithms]];
  if (algorithm == Algorithm::automatic)
    algorithm = choose_algorithm(shape, grid->shape(), with_shared_memory({}, *grid));
  std::optional<Storage> storage = cases.storages[at[storages]];
  Asked asked{name_of(cases.algorithms[at[algorithms]]), storage ? name_of(*storage) : "auto",
              cases.transports[at[transports]]};
  if (!storage)
    storage = cases.device == "cpu" ? faster_storage(algorithm, shape, grid->shape()) : Storage::columns;
  return {matrix_grid(algorithm, grid), shape, algorithm, cases.panel, *storage, std::move(asked)};
}

}  // namespace

std::string MatrixForm::text() const {
  const std::string cut = row_parts > 1 && col_parts > 1 ? "2-D"
                          : row_parts > 1                ? "1-D rows"
                          : col_parts > 1                ? "1-D cols"
                                                         : "whole";
  return copies > 1 ? fmt::format("{} x{}", cut, copies) : cut;
}

MatrixForm form_of(Algorithm algorithm, GridShape grid) {
  if (algorithm == Algorithm::block) return {grid.cols, 1, grid.rows};
  return {grid.rows, grid.cols, 1};
}

void warn_of_copies(const Communicator& world, const Cases& cases) {
  const Cases lists = completed(cases, world.size());
  std::vector<GridShape> said;
  for (const Entries& at : combinations(lists)) {
    const GridShape grid = lists.grids[at[grids]];
    const int copies = form_of(lists.algorithms[at[algorithms]], grid).copies;
    if (copies == 1 || std::find(said.begin(), said.end(), grid) != said.end()) continue;
    said.push_back(grid);
    if (world.rank() != 0) continue;
    program::warn(
        fmt::format("block on {}x{} keeps {} copies of A, one in each row of the grid; on 1x{} it keeps one",
                    grid.rows, grid.cols, copies, grid.size()));
  }
}

void for_each_case(Communicator& world, const Cases& cases,
                   const std::function<void(const Case&, LastProduct&)>& run) {
  load_calibration(world);
  const Cases lists = completed(cases, world.size());
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Entries>> on_grids;
  for (const Entries& at : combinations(lists)) on_grids[{at[grids], at[transports]}].push_back(at);
  std::vector<std::shared_ptr<const ProcessGrid>> made;  // makes all grids before measuring
  for (const auto& [place, entries] : on_grids)
    made.push_back(
        program::make_grid(world, lists.grids[place.first], lists.device, lists.transports[place.second]));
  for (auto grid = made.begin(); const auto& [place, entries] : on_grids) {
    program::run_on_grid(world, **grid, [&, &all = entries] {
      LastProduct last;
      for (const Entries& at : all) run(resolved(lists, at, *grid), last);
    });
    ++grid;
  }
}

}  // namespace gridlops::bench
