// SPDX-License-Identifier: BSD-3-Clause
#include "ops/peer_blocks.hpp"

#include <utility>

namespace gridlops {

GridLine my_grid_row(const ProcessGrid& grid) {
  GridLine line{&grid.row_comm(), {}, static_cast<std::size_t>(grid.my_col())};
  for (int q = 0; q < grid.cols(); ++q) line.ranks.push_back(grid.my_row() * grid.cols() + q);
  return line;
}

GridLine my_grid_col(const ProcessGrid& grid) {
  GridLine line{&grid.col_comm(), {}, static_cast<std::size_t>(grid.my_row())};
  for (int p = 0; p < grid.rows(); ++p) line.ranks.push_back(p * grid.cols() + grid.my_col());
  return line;
}

bool can_read_peers(const ProcessGrid& grid) {
  if (!grid.is_member()) return false;
  const std::string transport = grid.comm().transport();
  return transport == "shared" || transport == "one-sided";
}

template <Scalar T>
void PeerBlocks<T>::begin() {
  do_begin();
  if (!has_begun_ && A_) share_A();
  has_begun_ = true;
}

template <Scalar T>
void PeerBlocks<T>::show(GridLine line, MatrixView<const T> mine) {
  line_ = std::move(line);
  mine_ = mine;
  do_show(mine);
}

template <Scalar T>
PeerPart<T> PeerBlocks<T>::start_reading_A(int rank, Range cols, Buffer<T>& memory) {
  if (rank == me()) return {local_A().col_block(cols), {}};
  return read_A(rank, cols, memory);
}

template <Scalar T>
PeerPart<T> PeerBlocks<T>::start_reading(std::size_t k, Range rows, Buffer<T>& memory) {
  if (k == line_.mine) return {mine_.row_block(rows), {}};
  return read(k, rows, memory);
}

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                std::optional<DistMatrix<T>> A) {
  const bool shares = grid->comm().transport() == "shared";
  return shares ? make_shared_blocks(std::move(grid), std::move(A))
                : make_window_blocks(std::move(grid), std::move(A));
}

template class PeerBlocks<float>;
template class PeerBlocks<double>;
template class PeerBlocks<std::complex<float>>;
template class PeerBlocks<std::complex<double>>;

template std::unique_ptr<PeerBlocks<float>> make_peer_blocks(std::shared_ptr<const ProcessGrid>,
                                                             std::optional<DistMatrix<float>>);
template std::unique_ptr<PeerBlocks<double>> make_peer_blocks(std::shared_ptr<const ProcessGrid>,
                                                              std::optional<DistMatrix<double>>);
template std::unique_ptr<PeerBlocks<std::complex<float>>> make_peer_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<float>>>);
template std::unique_ptr<PeerBlocks<std::complex<double>>> make_peer_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<double>>>);

}  // namespace gridlops
