// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/communicators/nccl_communicator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/kernels.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::cuda {

namespace {

/// An operation that is complete when the communication stream reaches an event. wait() makes the compute
/// stream wait for it. In a group, closing the group records the event.
class StreamOperation final : public PendingOperation {
 public:
  explicit StreamOperation(std::shared_ptr<DeviceContext> context)
      : context_(std::move(context)), end_(std::make_shared<PooledEvent>()) {
    context_->communicates_until(end_);
    context_->after_group([end = end_, &so_far = *context_] { *end = so_far.communication_so_far(); });
  }
  void wait() override {
    require<UsageError>(is_issued(),
                        "an operation of a group is waited for before the group is closed, so "
                        "that it would not have begun; close the group first");
    context_->make_current();
    context_->compute_follows(end_->get());
  }
  bool test() override {
    if (!is_issued()) return false;
    context_->make_current();
    if (!context_->is_reached(end_->get())) return false;
    wait();
    return true;
  }

 private:
  bool is_issued() const { return end_->get() != nullptr; }

  std::shared_ptr<DeviceContext> context_;
  std::shared_ptr<PooledEvent> end_;
};

/// A host operation and a device operation, as one.
class Both final : public PendingOperation {
 public:
  Both(Request host, std::unique_ptr<PendingOperation> device)
      : host_(std::move(host)), device_(std::move(device)) {}
  void wait() override {
    device_->wait();
    host_.wait();
  }
  bool test() override { return host_.test() && device_->test(); }

 private:
  Request host_;
  std::unique_ptr<PendingOperation> device_;
};

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::byte:
      return ncclUint8;
    case ElementType::i32:
      return ncclInt32;
    case ElementType::i64:
      return ncclInt64;
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      break;
  }
  return ncclFloat64;
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::prod:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      break;
  }
  return ncclMax;
}

/// Whether an all-gather pads the parts to the longest, for NCCL's own. Otherwise parts of different lengths
/// take one broadcast each.
bool is_padded(std::span<const Index> counts) {
  const auto [shortest, longest] = std::minmax_element(counts.begin(), counts.end());
  const Index total = std::accumulate(counts.begin(), counts.end(), Index{0});
  return *longest > *shortest && *longest * std::ssize(counts) - total <= total / 8;
}

std::size_t length(const ConstElements& array) { return static_cast<std::size_t>(array.count); }

template <class T>
void fold_as(cudaStream_t stream, ReduceOp op, const Elements& contributions, const Elements& result) {
  const MatrixView<const T> columns(static_cast<const T*>(contributions.data), result.count,
                                    contributions.count / result.count);
  check(launch_rank_fold(stream, op, columns, static_cast<T*>(result.data)), "the kernel rank_fold");
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                                   std::shared_ptr<Traffic> traffic, NcclFormation formation,
                                   NcclHandle handle)
    : DeviceCommunicator(std::move(host), std::move(context), std::move(traffic)),
      formation_(formation),
      nccl_(std::move(handle)),
      scratch_(this->context(), this->context().communication()) {}

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                                   NcclFormation formation)
    : DeviceCommunicator(std::move(host), std::move(context), std::make_shared<Traffic>()),
      formation_(formation),
      nccl_(NcclHandle::form(this->host(), shared_context())),
      scratch_(this->context(), this->context().communication()) {
  this->host().barrier();
}

NcclCommunicator::~NcclCommunicator() = default;

// No rank goes on before all have formed the communicator: one that throws next, as all may do alike, would
// abort it while others still wait for its part.
std::unique_ptr<Communicator> NcclCommunicator::split_device(std::unique_ptr<Communicator> child_host,
                                                             std::optional<int> color, int key) {
  NcclHandle child;
  if (formation_ == NcclFormation::split) {
    child = nccl_.split(child_host.get(), color, key);
  } else if (child_host != nullptr) {
    child = NcclHandle::form(*child_host, shared_context());
  }
  host().barrier();
  if (child_host == nullptr) return nullptr;
  return std::unique_ptr<Communicator>(new NcclCommunicator(std::move(child_host), shared_context(),
                                                            traffic_account(), formation_, std::move(child)));
}

DeviceCommunicator::Pending NcclCommunicator::pending() const {
  return std::make_unique<StreamOperation>(shared_context());
}

DeviceCommunicator::Pending NcclCommunicator::stay_in_step(Request request) const {
  return std::make_unique<Both>(std::move(request), pending());
}

void NcclCommunicator::copy(const ConstElements& from, const Elements& to) const {
  if (from.count == 0 || from.data == to.data) return;
  check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToDevice,
                        context().communication()),
        "cudaMemcpyAsync on the GPU", from.bytes());
}

template <class Calls>
void NcclCommunicator::together(Calls&& calls) const {
  nccl_.get();  // throws before the group begins, which nobody would end
  nccl_.check(context().begin_calls(), "ncclGroupStart");
  calls();
  nccl_.check(context().end_calls(), "ncclGroupEnd");
}

void NcclCommunicator::send(const ConstElements& data, int destination) const {
  if (data.count == 0) return;
  nccl_.run("ncclSend", ncclSend, data.data, length(data), nccl_type(data.type), destination, nccl_.get(),
            context().communication());
}

void NcclCommunicator::receive(const Elements& data, int source) const {
  if (data.count == 0) return;
  nccl_.run("ncclRecv", ncclRecv, data.data, length(data), nccl_type(data.type), source, nccl_.get(),
            context().communication());
}

Elements NcclCommunicator::contributions(const ConstElements& like, Index count) {
  require<UsageError>(!context().is_group_open() || group_with_scratch_ != context().group_number(),
                      "a group has more than one operation of this communicator; it may have one of each");
  group_with_scratch_ = context().group_number();
  const Index total = count * size();
  return {scratch_.reserve(total * gridlops::size_of(like.type)), total, like.type};
}

void NcclCommunicator::do_reserve(CommOperation operation, std::span<const Index> counts, Index element_size,
                                  ReductionOrder order) {
  const bool pads = operation == CommOperation::all_gather && is_padded(counts);
  if (!pads && order == ReductionOrder::any) return;
  const Index part = operation == CommOperation::reduce_scatter
                         ? counts[at(rank())]
                         : *std::max_element(counts.begin(), counts.end());
  scratch_.reserve(part * size() * element_size);
}

void NcclCommunicator::fold(ReduceOp op, const Elements& contributions, const Elements& result) const {
  if (result.count == 0) return;
  context().after_group([stream = context().communication(), op, contributions, result] {
    switch (result.type) {
      case ElementType::i32:
        return fold_as<std::int32_t>(stream, op, contributions, result);
      case ElementType::i64:
        return fold_as<std::int64_t>(stream, op, contributions, result);
      case ElementType::f32:
        return fold_as<float>(stream, op, contributions, result);
      case ElementType::f64:
        return fold_as<double>(stream, op, contributions, result);
      case ElementType::byte:
        break;  // refused by CallAccount
    }
  });
}

DeviceCommunicator::Pending NcclCommunicator::broadcast_device(Elements data, int root) {
  nccl_.run("ncclBroadcast", ncclBroadcast, data.data, data.data, length(data), nccl_type(data.type), root,
            nccl_.get(), context().communication());
  return pending();
}

DeviceCommunicator::Pending NcclCommunicator::reduce_device(ConstElements in, Elements out, ReduceOp op,
                                                            int root, ReductionOrder order) {
  const bool am_root = rank() == root;
  if (order == ReductionOrder::any) {
    nccl_.run("ncclReduce", ncclReduce, in.data, am_root ? out.data : nullptr, length(in), nccl_type(in.type),
              nccl_op(op), root, nccl_.get(), context().communication());
    return pending();
  }
  if (!am_root) {
    together([&] { send(in, root); });
    return pending();
  }
  const Elements all = contributions(in, in.count);
  together([&] {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != root) receive(slice(all, peer * in.count, in.count), peer);
  });
  copy(in, slice(all, root * in.count, in.count));
  fold(op, all, out);
  return pending();
}

DeviceCommunicator::Pending NcclCommunicator::all_reduce_device(Elements data, ReduceOp op,
                                                                ReductionOrder order) {
  if (order == ReductionOrder::any) {
    nccl_.run("ncclAllReduce", ncclAllReduce, data.data, data.data, length(data), nccl_type(data.type),
              nccl_op(op), nccl_.get(), context().communication());
    return pending();
  }
  const Elements all = contributions(data, data.count);
  nccl_.run("ncclAllGather", ncclAllGather, data.data, all.data, length(data), nccl_type(data.type),
            nccl_.get(), context().communication());
  fold(op, all, data);
  return pending();
}

DeviceCommunicator::Pending NcclCommunicator::gather_device(ConstElements mine, Elements all,
                                                            std::span<const Index> counts, int root) {
  const std::vector<Index> nothing(counts.size(), 0);
  Request in_step = host().start_gather_v(slice(mine, 0, 0), Elements(nullptr, 0, mine.type), nothing, root);
  const ConstElements from = as_reals(mine);
  if (rank() != root) {
    together([&] { send(from, root); });
    return stay_in_step(std::move(in_step));
  }
  const RankParts parts(counts, mine.reals_per_element);
  const Elements whole = as_reals(all);
  together([&] {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != root) receive(parts.of(whole, peer), peer);
  });
  copy(from, parts.of(whole, root));
  return stay_in_step(std::move(in_step));
}

DeviceCommunicator::Pending NcclCommunicator::scatter_device(ConstElements all, std::span<const Index> counts,
                                                             Elements mine, int root) {
  const std::vector<Index> nothing(counts.size(), 0);
  Request in_step =
      host().start_scatter_v(ConstElements(nullptr, 0, mine.type), nothing, slice(mine, 0, 0), root);
  const Elements to = as_reals(mine);
  if (rank() != root) {
    together([&] { receive(to, root); });
    return stay_in_step(std::move(in_step));
  }
  const RankParts parts(counts, mine.reals_per_element);
  const ConstElements whole = as_reals(all);
  together([&] {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != root) send(parts.of(whole, peer), peer);
  });
  copy(parts.of(whole, root), to);
  return stay_in_step(std::move(in_step));
}

DeviceCommunicator::Pending NcclCommunicator::all_gather_device(ConstElements mine, Elements all,
                                                                std::span<const Index> counts) {
  const RankParts parts(counts, mine.reals_per_element);
  const ConstElements from = as_reals(mine);
  const Elements whole = as_reals(all);
  const auto [shortest, longest] = std::minmax_element(counts.begin(), counts.end());
  if (*longest == *shortest) {
    nccl_.run("ncclAllGather", ncclAllGather, from.data, whole.data, length(from), nccl_type(from.type),
              nccl_.get(), context().communication());
  } else if (is_padded(counts)) {
    gather_padded(from, whole, parts, *longest * mine.reals_per_element);
  } else {
    copy(from, parts.of(whole, rank()));
    together([&] {
      for (int root = 0; root < size(); ++root) {
        const Elements part = parts.of(whole, root);
        if (part.count == 0) continue;
        nccl_.run("ncclBroadcast", ncclBroadcast, part.data, part.data, length(part), nccl_type(part.type),
                  root, nccl_.get(), context().communication());
      }
    });
  }
  return pending();
}

void NcclCommunicator::gather_padded(const ConstElements& mine, const Elements& all, const RankParts& parts,
                                     Index longest) {
  const Elements padded = contributions(mine, longest);
  const Elements own = slice(padded, rank() * longest, longest);
  copy(mine, own);
  nccl_.run("ncclAllGather", ncclAllGather, own.data, padded.data, length(own), nccl_type(own.type),
            nccl_.get(), context().communication());
  context().after_group([this, padded, all, parts, longest] {
    for (int part = 0; part < size(); ++part)
      copy(slice(padded, part * longest, parts.count(part)), parts.of(all, part));
  });
}

DeviceCommunicator::Pending NcclCommunicator::reduce_scatter_device(ConstElements all,
                                                                    std::span<const Index> counts,
                                                                    Elements mine, ReduceOp op,
                                                                    ReductionOrder order) {
  const RankParts parts(counts, all.reals_per_element);
  const ConstElements from = as_reals(all);
  const Elements to = as_reals(mine);
  if (order == ReductionOrder::by_rank) {
    const Elements received = contributions(from, to.count);
    together([&] {
      for (int peer = 0; peer < size(); ++peer) {
        if (peer == rank()) continue;
        send(parts.of(from, peer), peer);
        receive(slice(received, peer * to.count, to.count), peer);
      }
    });
    copy(parts.of(from, rank()), slice(received, rank() * to.count, to.count));
    fold(op, received, to);
  } else if (std::all_of(counts.begin(), counts.end(),
                         [&](Index count) { return count == counts.front(); })) {
    nccl_.run("ncclReduceScatter", ncclReduceScatter, from.data, to.data, length(to), nccl_type(from.type),
              nccl_op(op), nccl_.get(), context().communication());
  } else {
    together([&] {
      for (int root = 0; root < size(); ++root) {
        const ConstElements part = parts.of(from, root);
        if (part.count == 0) continue;
        nccl_.run("ncclReduce", ncclReduce, part.data, root == rank() ? to.data : nullptr, length(part),
                  nccl_type(part.type), nccl_op(op), root, nccl_.get(), context().communication());
      }
    });
  }
  return pending();
}

DeviceCommunicator::Pending NcclCommunicator::all_to_all_device(ConstElements send_all,
                                                                std::span<const Index> send_counts,
                                                                Elements receive_all,
                                                                std::span<const Index> receive_counts) {
  const std::vector<Index> nothing(send_counts.size(), 0);
  Request in_step =
      host().start_all_to_all_v(slice(send_all, 0, 0), nothing, slice(receive_all, 0, 0), nothing);
  const RankParts outgoing(send_counts, send_all.reals_per_element);
  const RankParts incoming(receive_counts, receive_all.reals_per_element);
  const ConstElements from = as_reals(send_all);
  const Elements to = as_reals(receive_all);
  together([&] {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      send(outgoing.of(from, peer), peer);
      receive(incoming.of(to, peer), peer);
    }
  });
  copy(outgoing.of(from, rank()), incoming.of(to, rank()));
  return stay_in_step(std::move(in_step));
}

}  // namespace gridlops::cuda
