// SPDX-License-Identifier: BSD-3-Clause
#include "ops/peer_blocks.hpp"

#include <utility>

#include "base/instantiate.hpp"

namespace gridlops {

template <Scalar T>
void PeerBlocks<T>::show(MatrixView<const T> mine) {
  mine_ = mine;
  do_show(mine);
}

template <Scalar T>
void PeerBlocks<T>::show_for_good(MatrixView<const T> mine) {
  mine_ = mine;
  do_show_for_good(mine);
}

template <Scalar T>
PeerPart<T> PeerBlocks<T>::start_reading(int rank, Range rows, Range cols, Buffer<T>& memory) {
  if (rank == comm_.rank()) return {mine_.block(rows, cols), {}};
  return read(rank, rows, cols, memory);
}

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(Communicator& comm, std::shared_ptr<Backend> backend) {
  return comm.peer_access() == PeerAccess::in_place ? make_shared_blocks<T>(comm, std::move(backend))
                                                    : make_window_blocks<T>(comm, std::move(backend));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template class PeerBlocks<T>; \
  template std::unique_ptr<PeerBlocks<T>> make_peer_blocks(Communicator&, std::shared_ptr<Backend>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
