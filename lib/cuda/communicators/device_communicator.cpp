// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/communicators/device_communicator.hpp"

#include <exception>
#include <utility>

#include "cuda/communicators/staged_transfer.hpp"
#include "cuda/device_context.hpp"

namespace gridlops::cuda {

namespace {

/// An operation of the host communicator, as a PendingOperation.
class HostOperation final : public PendingOperation {
 public:
  explicit HostOperation(Request request) : request_(std::move(request)) {}
  void wait() override { request_.wait(); }
  bool test() override { return request_.test(); }

 private:
  Request request_;
};

bool is_on_device(const void* address) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

}  // namespace

DeviceCommunicator::DeviceCommunicator(std::unique_ptr<Communicator> host,
                                       std::shared_ptr<DeviceContext> context,
                                       std::shared_ptr<Traffic> traffic)
    : Communicator(host->rank(), host->size(), std::move(traffic)),
      host_(std::move(host)),
      context_(std::move(context)) {}

DeviceCommunicator::~DeviceCommunicator() = default;

void DeviceCommunicator::abort(ExitStatus status) {
  host_->abort(status);
  std::terminate();  // not reached, but the compiler does not know that host_->abort() never returns
}

DeviceCommunicator::OperandSpace DeviceCommunicator::space_of(std::initializer_list<ConstElements> operands) {
  for (const ConstElements& operand : operands)
    if (operand.count > 0 && operand.data != nullptr)
      return is_on_device(operand.data) ? OperandSpace::device : OperandSpace::host;
  return OperandSpace::none;
}

DeviceCommunicator::Pending DeviceCommunicator::as_pending(Request request) {
  return std::make_unique<HostOperation>(std::move(request));
}

void DeviceCommunicator::copy_on_device(const ConstElements& from, const Elements& to) const {
  if (from.count == 0 || from.data == to.data) return;
  check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToDevice,
                        context_->compute()),
        "cudaMemcpyAsync on the GPU", from.bytes());
}

/// Calls on_host(), which returns a request, or on_device(), which returns a pending operation.
template <class OnHost, class OnDevice>
DeviceCommunicator::Pending DeviceCommunicator::route(std::initializer_list<ConstElements> operands,
                                                      Completion completion, OnHost&& on_host,
                                                      OnDevice&& on_device) {
  Pending pending;
  if (space_of(operands) == OperandSpace::device) {
    context_->make_current();
    if (size() > 1) context_->communication_follows_compute();
    DeviceTimeline& timeline = context_->timeline();
    const auto region = timeline.begin(DeviceTimeline::Stream::communication, trace_region_name());
    pending = on_device();
    if (region != 0) context_->after_group([&timeline, region] { timeline.end(region); });
  } else {
    pending = as_pending(on_host());
  }
  if (pending != nullptr && completion == Completion::blocking) {
    pending->wait();
    return nullptr;
  }
  return pending;
}

std::unique_ptr<Communicator> DeviceCommunicator::do_split(std::optional<int> color, int key) {
  std::unique_ptr<Communicator> child_host = host_->split(color, key);
  context_->make_current();
  return split_device(std::move(child_host), color, key);
}

DeviceCommunicator::Pending DeviceCommunicator::do_barrier(Completion completion) {
  return route(
      {}, completion, [&] { return host_->start_barrier(); }, [] { return nullptr; });
}

DeviceCommunicator::Pending DeviceCommunicator::do_broadcast(Elements data, int root, Completion completion) {
  return route(
      {data}, completion, [&] { return host_->start_broadcast(data, root); },
      [&] { return size() == 1 ? nullptr : broadcast_device(as_reals(data), root); });
}

DeviceCommunicator::Pending DeviceCommunicator::do_reduce(ConstElements in, Elements out, ReduceOp op,
                                                          int root, ReductionOrder order,
                                                          Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return reduce_device(as_reals(in), as_reals(out), op, root, order);
    copy_on_device(in, out);
    return nullptr;
  };
  return route(
      {in}, completion, [&] { return host_->start_reduce(in, out, op, root, order); }, on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_all_reduce(Elements data, ReduceOp op,
                                                              ReductionOrder order, Completion completion) {
  return route(
      {data}, completion, [&] { return host_->start_all_reduce(data, op, order); },
      [&] { return size() == 1 ? nullptr : all_reduce_device(as_reals(data), op, order); });
}

DeviceCommunicator::Pending DeviceCommunicator::do_gather(ConstElements mine, Elements all,
                                                          std::span<const Index> counts, int root,
                                                          Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return gather_device(mine, all, counts, root);
    copy_on_device(mine, all);
    return nullptr;
  };
  return route(
      {mine, rank() == root ? ConstElements(all) : mine}, completion,
      [&] { return host_->start_gather_v(mine, all, counts, root); }, on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_scatter(ConstElements all, std::span<const Index> counts,
                                                           Elements mine, int root, Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return scatter_device(all, counts, mine, root);
    copy_on_device(all, mine);
    return nullptr;
  };
  return route(
      {mine, rank() == root ? all : ConstElements(mine)}, completion,
      [&] { return host_->start_scatter_v(all, counts, mine, root); }, on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_all_gather(ConstElements mine, Elements all,
                                                              std::span<const Index> counts,
                                                              Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return all_gather_device(mine, all, counts);
    copy_on_device(mine, all);
    return nullptr;
  };
  return route(
      {all}, completion, [&] { return host_->start_all_gather_v(mine, all, counts); }, on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_reduce_scatter(ConstElements all,
                                                                  std::span<const Index> counts,
                                                                  Elements mine, ReduceOp op,
                                                                  ReductionOrder order,
                                                                  Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return reduce_scatter_device(all, counts, mine, op, order);
    copy_on_device(all, mine);
    return nullptr;
  };
  return route(
      {all}, completion, [&] { return host_->start_reduce_scatter_v(all, counts, mine, op, order); },
      on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_all_to_all(ConstElements send,
                                                              std::span<const Index> send_counts,
                                                              Elements receive,
                                                              std::span<const Index> receive_counts,
                                                              Completion completion) {
  const auto on_device = [&]() -> Pending {
    if (size() > 1) return all_to_all_device(send, send_counts, receive, receive_counts);
    copy_on_device(send, receive);
    return nullptr;
  };
  return route(
      {send, receive}, completion,
      [&] { return host_->start_all_to_all_v(send, send_counts, receive, receive_counts); }, on_device);
}

DeviceCommunicator::Pending DeviceCommunicator::do_send(ConstElements data, int destination, int tag,
                                                        Completion completion) {
  return route(
      {data}, completion, [&] { return host_->start_send(data, destination, tag); },
      [&] {
        if (size() == 1) context_->communication_follows_compute();
        return send_device(as_reals(data), destination, tag);
      });
}

DeviceCommunicator::Pending DeviceCommunicator::do_receive(Elements data, int source, int tag,
                                                           Completion completion) {
  return route(
      {data}, completion, [&] { return host_->start_receive(data, source, tag); },
      [&] {
        if (size() == 1) context_->communication_follows_compute();
        return receive_device(as_reals(data), source, tag);
      });
}

DeviceCommunicator::Pending DeviceCommunicator::send_device(ConstElements data, int destination, int tag) {
  return StagedTransfer::in_chunks(context_, data, {}, [&](ConstElements chunk, Elements) {
    return host_->start_send(chunk, destination, tag);
  });
}

DeviceCommunicator::Pending DeviceCommunicator::receive_device(Elements data, int source, int tag) {
  return StagedTransfer::in_chunks(context_, {}, data, [&](ConstElements, Elements chunk) {
    return host_->start_receive(chunk, source, tag);
  });
}

}  // namespace gridlops::cuda
