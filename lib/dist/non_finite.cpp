// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/dist_matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops {

namespace {

/// The first such element in this rank's block, with local indices.
template <Scalar T>
std::optional<NonFiniteElement> find_in_block(const ConstDistMatrix<T>& X) {
  const MatrixView<const T> local = X.local();
  constexpr Index most = 1 << 16;
  std::vector<T> piece(at(std::min(local.rows, most)));
  for (Index j = 0; j < local.cols; ++j)
    for (Index i = 0; i < local.rows; i += most) {
      const Index count = std::min(most, local.rows - i);
      X.grid()->backend()->download(local.column(j) + i, piece.data(), count * Index{sizeof(T)});
      const auto end = piece.begin() + count,
                 found = std::find_if(piece.begin(), end, [](T element) {
                   return !std::isfinite(std::real(element)) || !std::isfinite(std::imag(element));
                 });
      if (found != end)
        return NonFiniteElement{i + (found - piece.begin()), j, 0,
                                std::complex<double>(std::real(*found), std::imag(*found))};
    }
  return {};
}

}  // namespace

template <Scalar T>
std::optional<NonFiniteElement> find_non_finite(const ConstDistMatrix<T>& X) {
  if (!X.grid()->is_member()) return {};
  Communicator& comm = X.grid()->comm();
  std::optional<NonFiniteElement> mine;
  attempt(comm, [&] { mine = find_in_block(X); });
  // The lowest column, then the lowest row in it, then the lowest rank that has both.
  constexpr Index none = std::numeric_limits<Index>::max();
  bool is_mine = mine.has_value();
  const auto least = [&](Index value) {
    std::array<Index, 1> number{is_mine ? value : none};
    comm.all_reduce(number, ReduceOp::min);
    is_mine = is_mine && number[0] == value;
    return number[0];
  };
  NonFiniteElement first;
  first.col = least(mine ? X.local_col_range().begin + mine->col : 0);
  if (first.col == none) return {};
  first.row = least(mine ? X.local_row_range().begin + mine->row : 0);
  first.rank = static_cast<int>(least(comm.rank()));
  std::array<double, 2> parts{mine ? mine->value.real() : 0, mine ? mine->value.imag() : 0};
  comm.broadcast(parts, first.rank);
  first.value = {parts[0], parts[1]};
  return first;
}

#define GRIDLOPS_INSTANTIATE(T) \
  template std::optional<NonFiniteElement> find_non_finite(const ConstDistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
