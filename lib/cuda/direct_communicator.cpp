// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/direct_communicator.hpp"

#include <utility>

#include "base/numbers.hpp"

namespace gridlops::cuda {

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
