// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>

#include "comm/rank_parts.hpp"
#include "cuda/device_context.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops::cuda {

/// A communicator for operands on the device and on the host. Host operands go to a host communicator;
/// derived classes define how device operands travel.
///
/// An operand's address tells where it is. A rank without elements has no address, but in gather, scatter and
/// all_to_all other ranks may still have elements. There every rank also calls the host communicator, with
/// empty parts if its elements are on the device, so that all ranks call it equally often. Without elements
/// it sends nothing.
class DeviceCommunicator : public Communicator {
 public:
  ~DeviceCommunicator() override;
  [[noreturn]] void abort(ExitStatus status) override;

 protected:
  DeviceCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                     std::shared_ptr<Traffic> traffic);

  Communicator& host() const { return *host_; }
  DeviceContext& context() const { return *context_; }
  const std::shared_ptr<DeviceContext>& shared_context() const { return context_; }

  /// An operation of the host communicator, as a PendingOperation.
  static Pending as_pending(Request request);

  /// to ← from on the device, in the compute stream.
  void copy_on_device(const ConstElements& from, const Elements& to) const;

  // Operations on arrays of reals on the device, among several ranks, of which at least one has elements.
  // They return once all work is queued in order. The communication stream already follows the compute
  // stream.
  virtual std::unique_ptr<Communicator> split_device(std::unique_ptr<Communicator> child_host,
                                                     std::optional<int> color, int key) = 0;
  virtual Pending broadcast_device(Elements data, int root) = 0;
  virtual Pending reduce_device(ConstElements in, Elements out, ReduceOp op, int root,
                                ReductionOrder order) = 0;
  virtual Pending all_reduce_device(Elements data, ReduceOp op, ReductionOrder order) = 0;
  virtual Pending gather_device(ConstElements mine, Elements all, std::span<const Index> counts,
                                int root) = 0;
  virtual Pending scatter_device(ConstElements all, std::span<const Index> counts, Elements mine,
                                 int root) = 0;
  virtual Pending all_gather_device(ConstElements mine, Elements all, std::span<const Index> counts) = 0;
  virtual Pending reduce_scatter_device(ConstElements all, std::span<const Index> counts, Elements mine,
                                        ReduceOp op, ReductionOrder order) = 0;
  virtual Pending all_to_all_device(ConstElements send, std::span<const Index> send_counts, Elements receive,
                                    std::span<const Index> receive_counts) = 0;

  // Messages have tags, and may be received in another order than they were sent. A transport that works in
  // streams cannot do that, so by default messages go through the host.
  virtual Pending send_device(ConstElements data, int destination, int tag);
  virtual Pending receive_device(Elements data, int source, int tag);

 private:
  enum class OperandSpace { host, device, none };
  static OperandSpace space_of(std::initializer_list<ConstElements> operands);
  template <class OnHost, class OnDevice>
  Pending route(std::initializer_list<ConstElements> operands, Completion completion, OnHost&& on_host,
                OnDevice&& on_device);

  std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) final;
  Pending do_barrier(Completion) final;
  Pending do_broadcast(Elements data, int root, Completion) final;
  Pending do_reduce(ConstElements in, Elements out, ReduceOp, int root, ReductionOrder, Completion) final;
  Pending do_all_reduce(Elements data, ReduceOp, ReductionOrder, Completion) final;
  Pending do_gather(ConstElements mine, Elements all, std::span<const Index> counts, int root,
                    Completion) final;
  Pending do_scatter(ConstElements all, std::span<const Index> counts, Elements mine, int root,
                     Completion) final;
  Pending do_all_gather(ConstElements mine, Elements all, std::span<const Index> counts, Completion) final;
  Pending do_reduce_scatter(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp,
                            ReductionOrder, Completion) final;
  Pending do_all_to_all(ConstElements send, std::span<const Index> send_counts, Elements receive,
                        std::span<const Index> receive_counts, Completion) final;
  Pending do_send(ConstElements data, int destination, int tag, Completion) final;
  Pending do_receive(Elements data, int source, int tag, Completion) final;

  std::unique_ptr<Communicator> host_;
  std::shared_ptr<DeviceContext> context_;
};

}  // namespace gridlops::cuda
