// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/communicators/staged_communicator.hpp"

#include <utility>
#include "base/numbers.hpp"

namespace gridlops::cuda {

std::unique_ptr<Communicator> StagedCommunicator::split_device(std::unique_ptr<Communicator> child_host,
                                                               std::optional<int>, int) {
  if (child_host == nullptr) return nullptr;
  return std::make_unique<StagedCommunicator>(std::move(child_host), shared_context(), traffic_account());
}

template <class Start>
DeviceCommunicator::Pending StagedCommunicator::at_once(const ConstElements& in, const Elements& out,
                                                        const Start& start) {
  auto transfer = std::make_unique<StagedTransfer>(shared_context());
  const Elements host_in = transfer->stage(in);
  const Elements host_out = transfer->stage(out);
  transfer->download(in, host_in);
  transfer->await_downloads();
  transfer->add(start(ConstElements(host_in), host_out), {{host_out, out}});
  return transfer;
}

DeviceCommunicator::Pending StagedCommunicator::broadcast_device(Elements data, int root) {
  const bool am_root = rank() == root;
  return StagedTransfer::in_chunks(
      shared_context(), am_root ? ConstElements(data) : ConstElements(), am_root ? Elements() : data,
      [&](ConstElements mine, Elements theirs) {
        return host().start_broadcast(
            am_root ? Elements(const_cast<void*>(mine.data), mine.count, mine.type) : theirs, root);
      });
}

DeviceCommunicator::Pending StagedCommunicator::reduce_device(ConstElements in, Elements out, ReduceOp op,
                                                              int root, ReductionOrder order) {
  return StagedTransfer::in_chunks(
      shared_context(), in, rank() == root ? out : Elements(),
      [&](ConstElements from, Elements to) { return host().start_reduce(from, to, op, root, order); });
}

DeviceCommunicator::Pending StagedCommunicator::all_reduce_device(Elements data, ReduceOp op,
                                                                  ReductionOrder order) {
  return StagedTransfer::in_chunks(shared_context(), data, data, [&](ConstElements, Elements both) {
    return host().start_all_reduce(both, op, order);
  });
}

DeviceCommunicator::Pending StagedCommunicator::gather_device(ConstElements mine, Elements all,
                                                              std::span<const Index> counts, int root) {
  const Elements out = rank() == root ? all : Elements(nullptr, 0, mine.type, mine.reals_per_element);
  return at_once(mine, out, [&](const ConstElements& from, const Elements& to) {
    return host().start_gather_v(from, to, counts, root);
  });
}

DeviceCommunicator::Pending StagedCommunicator::scatter_device(ConstElements all,
                                                               std::span<const Index> counts, Elements mine,
                                                               int root) {
  const ConstElements in =
      rank() == root ? all : ConstElements(nullptr, 0, mine.type, mine.reals_per_element);
  return at_once(in, mine, [&](const ConstElements& from, const Elements& to) {
    return host().start_scatter_v(from, counts, to, root);
  });
}

DeviceCommunicator::Pending StagedCommunicator::all_gather_device(ConstElements mine, Elements all,
                                                                  std::span<const Index> counts) {
  return at_once(mine, all, [&](const ConstElements& from, const Elements& to) {
    return host().start_all_gather_v(from, to, counts);
  });
}

DeviceCommunicator::Pending StagedCommunicator::reduce_scatter_device(ConstElements all,
                                                                      std::span<const Index> counts,
                                                                      Elements mine, ReduceOp op,
                                                                      ReductionOrder order) {
  return at_once(all, mine, [&](const ConstElements& from, const Elements& to) {
    return host().start_reduce_scatter_v(from, counts, to, op, order);
  });
}

DeviceCommunicator::Pending StagedCommunicator::all_to_all_device(ConstElements send,
                                                                  std::span<const Index> send_counts,
                                                                  Elements receive,
                                                                  std::span<const Index> receive_counts) {
  return at_once(send, receive, [&](const ConstElements& from, const Elements& to) {
    return host().start_all_to_all_v(from, send_counts, to, receive_counts);
  });
}

std::unique_ptr<Communicator> DirectCommunicator::split_device(std::unique_ptr<Communicator> child_host,
                                                               std::optional<int>, int) {
  if (child_host == nullptr) return nullptr;
  return std::make_unique<DirectCommunicator>(std::move(child_host), shared_context(), traffic_account());
}

Elements DirectCommunicator::own_part(const ConstElements& all, std::span<const Index> counts) const {
  const RankParts parts(counts, all.reals_per_element);
  const void* place = parts.of(as_reals(all), rank()).data;
  return {const_cast<void*>(place), counts[at(rank())], all.type, all.reals_per_element};
}

void DirectCommunicator::await_device() const { context().synchronize(); }

DeviceCommunicator::Pending DirectCommunicator::broadcast_device(Elements data, int root) {
  await_device();
  return as_pending(host().start_broadcast(data, root));
}

DeviceCommunicator::Pending DirectCommunicator::gather_device(ConstElements mine, Elements all,
                                                              std::span<const Index> counts, int root) {
  if (rank() != root) {
    await_device();
    return as_pending(
        host().start_gather_v(mine, Elements(nullptr, 0, mine.type, mine.reals_per_element), counts, root));
  }
  const Elements own = own_part(all, counts);
  copy_on_device(mine, own);
  await_device();
  return as_pending(host().start_gather_v(own, all, counts, root));
}

DeviceCommunicator::Pending DirectCommunicator::scatter_device(ConstElements all,
                                                               std::span<const Index> counts, Elements mine,
                                                               int root) {
  if (rank() != root) {
    await_device();
    return as_pending(host().start_scatter_v(ConstElements(nullptr, 0, mine.type, mine.reals_per_element),
                                             counts, mine, root));
  }
  const Elements own = own_part(all, counts);
  copy_on_device(own, mine);
  await_device();
  return as_pending(host().start_scatter_v(all, counts, own, root));
}

DeviceCommunicator::Pending DirectCommunicator::all_gather_device(ConstElements mine, Elements all,
                                                                  std::span<const Index> counts) {
  const Elements own = own_part(all, counts);
  copy_on_device(mine, own);
  await_device();
  return as_pending(host().start_all_gather_v(own, all, counts));
}

DeviceCommunicator::Pending DirectCommunicator::send_device(ConstElements data, int destination, int tag) {
  await_device();
  return as_pending(host().start_send(data, destination, tag));
}

DeviceCommunicator::Pending DirectCommunicator::receive_device(Elements data, int source, int tag) {
  await_device();
  return as_pending(host().start_receive(data, source, tag));
}

}  // namespace gridlops::cuda
