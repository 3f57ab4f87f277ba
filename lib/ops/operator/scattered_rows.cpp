// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/scattered_rows.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/call_account.hpp"
#include "dist/axis_ranks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Rows of a block, as they travel: one piece for each rank, one after the other.
struct TravellingRows {
  /// `size` rows from `row` of the block are those from `first` of a piece of `height` rows. `begin` rows
  /// travel before the piece.
  struct Run {
    Index row, size, begin, height, first;
  };
  std::vector<Run> runs;
  std::vector<Index> counts;  // rows for each rank
  Index total = 0;

  TravellingRows() = default;
  /// rows: those of the block, piece by piece.
  TravellingRows(const std::vector<Index>& rows, std::vector<Index> counts_of_ranks)
      : counts(std::move(counts_of_ranks)), total(static_cast<Index>(rows.size())) {
    Index begin = 0;
    for (const Index height : counts) {
      for (Index k = 0; k < height; ++k) {
        const Index row = rows[at(begin + k)];
        if (k > 0 && row == runs.back().row + runs.back().size) {
          ++runs.back().size;
        } else {
          runs.push_back({row, 1, begin, height, k});
        }
      }
      begin += height;
    }
    runs.shrink_to_fit();
  }

  std::vector<Index> counts_for(Index columns) const {
    std::vector<Index> elements = counts;
    for (Index& count : elements) count *= columns;
    return elements;
  }
  /// A run within the elements that travel.
  template <class Element>
  static MatrixView<Element> travelling(const Run& run, Element* elements, Index columns) {
    return {elements + run.begin * columns + run.first, run.size, columns, run.height};
  }
};

/// Both ends of the exchange, as this rank has them.
struct RowExchange {
  Partition partition;  // of the scattered rows
  TravellingRows scattered, in_order;
};

/// The scattered rows of this rank, in the order in which they travel.
struct SortedRows {
  std::vector<Index> places, numbers, counts;
};

/// Sorts by the rank that has the row in order, then by number. Throws on this rank alone.
SortedRows sort_rows(const Partition& in_order, const AxisRanks& ranks, const std::vector<Index>& my_rows) {
  std::vector<int> rank_of_part(ranks.parts.size());
  for (std::size_t rank = 0; rank < ranks.parts.size(); ++rank)
    rank_of_part[at(ranks.parts[rank])] = static_cast<int>(rank);
  for (std::size_t k = 0; k < my_rows.size(); ++k)
    require_here<UsageError>(0 <= my_rows[k] && my_rows[k] < in_order.total(), "scattered_rows: row ", k,
                             " of the block is to be row ", my_rows[k], ", but rows are from 0 to ",
                             in_order.total() - 1);
  SortedRows sorted{std::vector<Index>(my_rows.size()), {}, std::vector<Index>(ranks.parts.size(), 0)};
  std::iota(sorted.places.begin(), sorted.places.end(), Index{0});
  const auto key = [&](Index place) {
    const Index number = my_rows[at(place)];
    return std::pair(rank_of_part[at(in_order.owner_of(number))], number);
  };
  std::sort(sorted.places.begin(), sorted.places.end(), [&](Index a, Index b) { return key(a) < key(b); });
  for (const Index place : sorted.places) {
    const auto [rank, number] = key(place);
    sorted.numbers.push_back(number);
    ++sorted.counts[at(rank)];
  }
  return sorted;
}

/// Throws on this rank alone unless each row of this range comes from one rank.
void require_each_once(const std::vector<Index>& numbers, const std::vector<Index>& counts, Range rows) {
  std::vector<int> source(at(rows.size), -1);
  std::size_t k = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    for (Index end = static_cast<Index>(k) + counts[rank]; static_cast<Index>(k) < end; ++k) {
      int& from = source[at(numbers[k] - rows.begin)];
      require_here<UsageError>(from < 0, "scattered_rows: row ", numbers[k], " is on rank ", from,
                               " and on rank ", rank, "; each row must be on one rank, once");
      from = static_cast<int>(rank);
    }
  }
  const auto missing = std::find(source.begin(), source.end(), -1);
  require_here<UsageError>(missing == source.end(), "scattered_rows: row ",
                           rows.begin + (missing - source.begin()),
                           " is on no rank; each row must be on one rank, once");
}

void require_no_copies(const Space& in_order) {
  const Axis axis = in_order.rows.axis;
  require<ShapeError>(axis == Axis::all || axis == Axis::all_transposed,
                      "scattered_rows: ranks would have copies of rows that lie as ", in_order.describe(),
                      "; cut them along `all` or `all_transposed`");
}

/// Plans the exchange (collective over the grid).
template <Scalar T>
RowExchange plan_exchange(const Space& space, const std::vector<Index>& my_rows) {
  const ProcessGrid& grid = *space.grid;
  Communicator& comm = grid.comm();
  const AgreementAccount account(comm);
  AxisRanks ranks{};
  SortedRows mine;
  agree(comm, "scattered_rows", [&](Agreement& agreement) {
    agreement.on("the element type", name_of(scalar_type_of<T>));
    describe_layout(agreement, "the rows in order", space.layout(0));
    require_no_copies(space);
    ranks = ranks_along(grid, space.rows.axis);
    mine = sort_rows(space.rows.partition, ranks, my_rows);
  });
  std::vector<Index> here(mine.counts.size()), numbers, sizes(mine.counts.size());
  comm.all_to_all(mine.counts, here);
  comm.all_gather(std::vector<Index>{static_cast<Index>(my_rows.size())}, sizes);
  attempt(comm, [&] { numbers.resize(at(std::accumulate(here.begin(), here.end(), Index{0}))); });
  comm.all_to_all_v(mine.numbers, mine.counts, numbers, here);
  RowExchange exchange;
  attempt(comm, [&] {
    const Range rows = space.rows.partition.range(grid.my_part(space.rows.axis));
    require_each_once(numbers, here, rows);
    for (Index& number : numbers) number -= rows.begin;
    std::vector<Index> of_parts(sizes.size());
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) of_parts[at(ranks.parts[rank])] = sizes[rank];
    exchange = {Partition::with_sizes(of_parts), {mine.places, mine.counts}, {numbers, here}};
  });
  return exchange;
}

/// The permutation from rows as ranks have them to rows in order.
template <Scalar T>
class ScatteredRows final : public LibraryOperator<T> {
 public:
  ScatteredRows(const Space& in_order, RowExchange exchange)
      : LibraryOperator<T>(in_order,
                           Space{in_order.grid, {in_order.rows.axis, exchange.partition}, in_order.columns}),
        exchange_(std::move(exchange)) {}

 private:
  Index elements(Index columns) const {
    return (exchange_.scattered.total + exchange_.in_order.total) * columns;
  }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return ScratchStack::bytes_of<T>(elements(this->domain().local_columns(columns)));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    const std::size_t runs = exchange_.scattered.runs.size() + exchange_.in_order.runs.size();
    kept.add(this, static_cast<Index>(runs * sizeof(TravellingRows::Run)));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    move(exchange_.scattered, alpha, X, exchange_.in_order, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    move(exchange_.in_order, alpha, Y, exchange_.scattered, beta, X);
  }
  void move(const TravellingRows& out, T alpha, const ConstDistMatrix<T>& X, const TravellingRows& in, T beta,
            DistMatrix<T>& Y) const {
    const ProcessGrid& grid = *Y.grid();
    const Kernels<T>& kernels = grid.backend()->template kernels<T>();
    const Index columns = X.local().cols;
    const ScratchArray<T> memory(grid, elements(columns));
    T *const sent = memory.data(), *const received = sent + out.total * columns;
    for (const TravellingRows::Run& run : out.runs)
      kernels.copy(X.local().row_block({run.row, run.size}), out.travelling(run, sent, columns));
    grid.comm().all_to_all_v({sent, out.total * columns}, out.counts_for(columns),
                             {received, in.total * columns}, in.counts_for(columns));
    for (const TravellingRows::Run& run : in.runs)
      kernels.add(alpha, MatrixView<const T>(in.travelling(run, received, columns)), beta,
                  Y.local().row_block({run.row, run.size}));
  }

  const RowExchange exchange_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> scattered_rows(const Space& in_order, const std::vector<Index>& my_rows) {
  if (!in_order.grid->is_member()) {
    require_no_copies(in_order);
    return std::make_shared<ScatteredRows<T>>(in_order, RowExchange{in_order.rows.partition, {}, {}});
  }
  return std::make_shared<ScatteredRows<T>>(in_order, plan_exchange<T>(in_order, my_rows));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> scattered_rows(const Space&, const std::vector<Index>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
