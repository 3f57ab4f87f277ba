// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nccl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cuda/communicators/device_communicator.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/gpu_kernels.hpp"

namespace gridlops::cuda {

/// How NCCL communicators are formed: by splitting another one, which NCCL can from version 2.18.1 on, or by
/// a unique id that rank 0 sends to the others through the host.
enum class NcclFormation { split, unique_id };
/// split, if this NCCL has it.
NcclFormation usual_formation();

/// Owns the handle of an NCCL communicator; a single rank needs none and has none. Errors of its calls abort
/// all communicators of the device, so that no other rank waits for ever. Move-only.
class NcclHandle {
 public:
  NcclHandle() = default;
  /// Makes a communicator with the ranks of host (collective over host).
  static NcclHandle form(Communicator& host, const std::shared_ptr<DeviceContext>& context);
  /// Splits the communicator (collective over its ranks). child_host is null on ranks without a colour.
  NcclHandle split(const Communicator* child_host, std::optional<int> color, int key) const;

  NcclHandle(NcclHandle&& other) noexcept
      : context_(std::move(other.context_)),
        raw_(std::exchange(other.raw_, nullptr)),
        number_(other.number_) {}
  NcclHandle& operator=(NcclHandle&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(raw_, other.raw_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~NcclHandle();

  /// Throws CommunicationError if the communicator was aborted with all others of the device.
  ncclComm_t get() const;
  /// Makes a call of NCCL that may block, and waits until it is carried out. Errors name it `name`.
  template <class Call, class... Arguments>
  void run(const char* name, Call&& call, const Arguments&... arguments) const {
    check(run_watched(call, arguments...), name);
  }
  void check(ncclResult_t result, const char* call) const;

 private:
  NcclHandle(std::shared_ptr<DeviceContext> context, ncclComm_t raw);
  void require_ranks_of(const Communicator& host) const;

  std::shared_ptr<DeviceContext> context_;
  ncclComm_t raw_ = nullptr;
  Index number_ = 0;  // of the context
};

/// A communicator that moves device operands by NCCL, in the device's communication stream. An operation is
/// pending until the compute stream waits for its event.
class NcclCommunicator final : public DeviceCommunicator {
 public:
  /// Collective over host.
  NcclCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                   NcclFormation formation);
  ~NcclCommunicator() override;

  std::string transport() const override { return "nccl"; }

 private:
  NcclCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                   std::shared_ptr<Traffic> traffic, NcclFormation formation, NcclHandle handle);

  void do_open_group() override { context().open_group(); }
  void do_close_group() override { context().close_group(); }
  void do_abandon_group() noexcept override { context().abandon_group(); }
  void do_reserve(CommOperation operation, std::span<const Index> counts, Index element_size,
                  ReductionOrder order) override;

  std::unique_ptr<Communicator> split_device(std::unique_ptr<Communicator> child_host,
                                             std::optional<int> color, int key) override;
  Pending broadcast_device(Elements data, int root) override;
  Pending reduce_device(ConstElements in, Elements out, ReduceOp op, int root, ReductionOrder order) override;
  Pending all_reduce_device(Elements data, ReduceOp op, ReductionOrder order) override;
  Pending gather_device(ConstElements mine, Elements all, std::span<const Index> counts, int root) override;
  Pending scatter_device(ConstElements all, std::span<const Index> counts, Elements mine, int root) override;
  Pending all_gather_device(ConstElements mine, Elements all, std::span<const Index> counts) override;
  Pending reduce_scatter_device(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp op,
                                ReductionOrder order) override;
  Pending all_to_all_device(ConstElements send, std::span<const Index> send_counts, Elements receive,
                            std::span<const Index> receive_counts) override;

  // The functions below work in the communication stream, on arrays of reals.

  void copy(const ConstElements& from, const Elements& to) const;
  /// Makes several calls as one operation.
  template <class Calls>
  void together(Calls&& calls) const;
  void send(const ConstElements& data, int destination) const;
  void receive(const Elements& data, int source) const;
  void gather_padded(const ConstElements& mine, const Elements& all, const RankParts& parts, Index longest);
  /// Scratch memory for one array of `count` reals per rank, valid until the next call or the end of the open
  /// group.
  Elements contributions(const ConstElements& like, Index count);
  /// Reduces the contributions of the ranks, now or at the end of the open group, which delivers them.
  void fold(ReduceOp op, const Elements& contributions, const Elements& result) const;
  /// For gather, scatter and all_to_all: ranks without elements call the host's operation, so all others call
  /// it too, with empty parts.
  Pending stay_in_step(Request request) const;
  Pending pending() const;

  NcclFormation formation_;
  NcclHandle nccl_;
  StreamMemory scratch_;
  Index group_with_scratch_ = 0;
};

}  // namespace gridlops::cuda
