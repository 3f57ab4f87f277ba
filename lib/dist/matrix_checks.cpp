// SPDX-License-Identifier: BSD-3-Clause
#include "dist/matrix_checks.hpp"

#include <map>
#include <utility>
#include <vector>

#include "base/at_work.hpp"
#include "base/hash.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/call_account.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops {

template <Scalar T>
std::uint64_t hash_of_column(std::span<const T> column, std::uint64_t before) {
  return hash_of_bytes(column.data(), static_cast<Index>(column.size_bytes()), before);
}

template <Scalar T>
std::uint64_t hash_of_block(const ConstDistMatrix<T>& X) {
  const MatrixView<const T> local = X.local();
  if (local.empty()) return 0;
  Backend& backend = *X.grid()->backend();
  const bool on_host = backend.memory_space() == MemorySpace::host;
  std::vector<T> downloaded(on_host ? 0 : at(local.rows));
  std::uint64_t hash = 0;
  const AtWork at_work;
  for (Index j = 0; j < local.cols; ++j) {
    if (!on_host) backend.download(local.column(j), downloaded.data(), local.rows * Index{sizeof(T)});
    hash = hash_of_column<T>({on_host ? local.column(j) : downloaded.data(), at(local.rows)}, hash);
  }
  return hash;
}

template <Scalar T>
void require_equal_copies(const ConstDistMatrix<T>& X, std::string_view name) {
  const ProcessGrid& grid = *X.grid();
  if (!grid.is_member()) return;
  std::vector<Index> mine(1), all(at(grid.comm().size()));
  const AgreementAccount account(grid.comm());
  attempt(grid.comm(), [&] { mine[0] = static_cast<Index>(hash_of_block(X)); });
  grid.comm().all_gather(mine, all);
  const Layout& layout = X.layout();
  std::map<std::pair<int, int>, std::size_t> owners;  // the first rank that holds each block
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int row = static_cast<int>(rank) / grid.cols(), col = static_cast<int>(rank) % grid.cols();
    const std::pair block(grid.part_at(layout.rows.axis, row, col), grid.part_at(layout.cols.axis, row, col));
    const std::size_t owner = owners.try_emplace(block, rank).first->second;
    require<ShapeError>(all[owner] == all[rank], name, ", ", layout.describe(),
                        ": the copies of one block on ranks ", owner, " and ", rank,
                        " differ. Copies must be the same bit by bit: fill them alike, or let redistribute() "
                        "make them");
  }
}

#define GRIDLOPS_INSTANTIATE(T)                                             \
  template std::uint64_t hash_of_column(std::span<const T>, std::uint64_t); \
  template std::uint64_t hash_of_block(const ConstDistMatrix<T>&);          \
  template void require_equal_copies(const ConstDistMatrix<T>&, std::string_view);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
