// SPDX-License-Identifier: BSD-3-Clause
#include "dist/box_exchange.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

namespace {

/// The position of a box within a larger one that is stored in C order, and the distances between its
/// elements.
struct Place {
  Index begin = 0;
  std::vector<Index> strides;
};
Place place_in(const Box& larger, const Box& box) {
  Place place{0, std::vector<Index>(box.size())};
  Index stride = 1;
  for (std::size_t d = box.size(); d-- > 0;) {
    place.strides[d] = stride;
    place.begin += (box[d].begin - larger[d].begin) * stride;
    stride *= larger[d].size;
  }
  return place;
}

/// Some columns of a box that lies within a larger one.
template <class T>
struct BoxColumns {
  T* data;
  Index columns, stride;
  Box larger;
};

/// to ← α from + β to for a box within both.
template <Scalar T>
void add_box(const Backend& backend, const Box& box, T alpha, const BoxColumns<const T>& from, T beta,
             const BoxColumns<T>& to) {
  if (size_of(box) == 0 || to.columns == 0) return;
  const Place in_from = place_in(from.larger, box), in_to = place_in(to.larger, box);
  BoxLoops loops;
  loops.add(to.columns, from.stride, to.stride);
  for (std::size_t d = 0; d < box.size(); ++d) loops.add(box[d].size, in_from.strides[d], in_to.strides[d]);
  backend.kernels<T>().arrays().add_box(alpha, from.data + in_from.begin, beta, to.data + in_to.begin, loops);
}

}  // namespace

template <Scalar T>
auto BoxExchange<T>::pieces_between(const BoxesOfRank& from, const BoxesOfRank& to) -> std::vector<Piece> {
  std::vector<Piece> pieces;
  for (std::size_t k = 0; k < to.wants.size(); ++k) {
    Piece piece{intersect(from.has, to.wants[k]), k, 0};
    if (!from.has.empty() && size_of(piece.box) > 0) pieces.push_back(std::move(piece));
  }
  return pieces;
}

template <Scalar T>
void BoxExchange<T>::Side::add(std::vector<Piece> pieces_with_one_rank) {
  const Index before = total;
  for (Piece& piece : pieces_with_one_rank) {
    piece.offset = total;
    total += size_of(piece.box);
    pieces.push_back(std::move(piece));
  }
  counts.push_back(total - before);
}

template <Scalar T>
std::vector<Index> BoxExchange<T>::Side::counts_for(Index columns) const {
  std::vector<Index> scaled;
  for (const Index count : counts) scaled.push_back(count * columns);
  return scaled;
}

template <Scalar T>
BoxExchange<T>::BoxExchange(std::shared_ptr<Backend> backend, Communicator* comm,
                            const std::vector<BoxesOfRank>& ranks)
    : backend_(std::move(backend)), comm_(comm) {
  const std::size_t me = comm == nullptr ? 0 : at(comm->rank());
  mine_ = ranks[me];
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    out_.add(rank == me ? std::vector<Piece>{} : pieces_between(mine_, ranks[rank]));
    in_.add(rank == me ? std::vector<Piece>{} : pieces_between(ranks[rank], mine_));
  }
  kept_ = pieces_between(mine_, mine_);
}

template <Scalar T>
Request BoxExchange<T>::start(const T* send, const Side& sent, T* receive, const Side& received,
                              Index columns) const {
  if (comm_ == nullptr) return {};
  return comm_->start_all_to_all_v({send, sent.total * columns}, sent.counts_for(columns),
                                   {receive, received.total * columns}, received.counts_for(columns));
}

template <Scalar T>
Request BoxExchange<T>::start_fetch(MatrixView<const T> block, T* memory) const {
  const TraceRegion region("box exchange");
  const Index columns = block.cols;
  for (const Piece& piece : out_.pieces) {
    const Index size = size_of(piece.box);
    add_box<T>(*backend_, piece.box, T(1), {block.data, columns, block.stride, mine_.has}, T(0),
               {memory + piece.offset * columns, columns, size, piece.box});
  }
  return start(memory, out_, incoming(memory, columns), in_, columns);
}

template <Scalar T>
void BoxExchange<T>::finish_fetch(Request request, T alpha, MatrixView<const T> block, T beta,
                                  const std::vector<MatrixView<T>>& wanted, T* memory) const {
  const TraceRegion region("box exchange");
  const Index columns = block.cols;
  const auto target = [&](const Piece& piece) {
    const MatrixView<T>& box = wanted[piece.wanted];
    return BoxColumns<T>{box.data, columns, box.stride, mine_.wants[piece.wanted]};
  };
  for (const Piece& piece : kept_)
    add_box<T>(*backend_, piece.box, alpha, {block.data, columns, block.stride, mine_.has}, beta,
               target(piece));
  request.wait();
  for (const Piece& piece : in_.pieces)
    add_box<T>(*backend_, piece.box, alpha,
               {incoming(memory, columns) + piece.offset * columns, columns, size_of(piece.box), piece.box},
               beta, target(piece));
}

template <Scalar T>
void BoxExchange<T>::sum_back(T alpha, const std::vector<MatrixView<const T>>& wanted, MatrixView<T> block,
                              T* memory) const {
  const TraceRegion region("box exchange");
  const Index columns = block.cols;
  const auto source = [&](const Piece& piece) {
    const MatrixView<const T>& box = wanted[piece.wanted];
    return BoxColumns<const T>{box.data, columns, box.stride, mine_.wants[piece.wanted]};
  };
  for (const Piece& piece : in_.pieces)
    add_box<T>(*backend_, piece.box, T(1), source(piece), T(0),
               {incoming(memory, columns) + piece.offset * columns, columns, size_of(piece.box), piece.box});
  Request request = start(incoming(memory, columns), in_, memory, out_, columns);
  for (const Piece& piece : kept_)
    add_box<T>(*backend_, piece.box, alpha, source(piece), T(1),
               {block.data, columns, block.stride, mine_.has});
  request.wait();
  for (const Piece& piece : out_.pieces)
    add_box<T>(*backend_, piece.box, alpha,
               {memory + piece.offset * columns, columns, size_of(piece.box), piece.box}, T(1),
               {block.data, columns, block.stride, mine_.has});
}

#define GRIDLOPS_INSTANTIATE(T) template class BoxExchange<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
