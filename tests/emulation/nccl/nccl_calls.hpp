// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "emulation/nccl/nccl_communicator.hpp"

namespace emulation {

/// One NCCL operation on this rank, from the call to its end.
class Call {
 public:
  Call(Kind kind, const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
       int root, ncclComm_t comm, cudaStream_t stream);

  cudaStream_t stream() const { return stream_; }
  ncclComm_t comm() const { return comm_; }
  bool is_message() const { return signature_.kind == Kind::send || signature_.kind == Kind::receive; }
  /// Whether all peers have come to their first call of this kind, as this rank now has. NCCL then connects
  /// them; until then the host waits.
  bool is_connected() const;
  /// Assigns the operation its number in the communicator's order.
  void issue(long group);
  std::vector<Region> regions() const;
  std::string label() const;
  /// Advances as far as the peers have come; true when the operation is over on this rank.
  bool step();
  std::string state() const;

 private:
  bool step_collective();
  bool step_send();
  bool step_receive();
  void compare_signatures() const;
  void compute();
  void fold(std::size_t first_element);
  void require_device(const void* address) const;
  const char* data_of(int rank) const { return comm_->memory_of(rank, comm_->slot(rank).offset); }
  bool is_root() const { return comm_->rank == signature_.root; }
  std::size_t count() const { return static_cast<std::size_t>(signature_.count); }
  std::size_t bytes() const;

  Signature signature_;
  const void* from_;
  void* to_;
  ncclComm_t comm_;
  cudaStream_t stream_;
  long number_ = 0;
  int stage_ = 0;
  std::vector<char> result_;
};

/// Whether the calls of a group can be queued. NCCL connects messages at once, then collective operations by
/// communicator, in an order that all ranks know.
bool are_connected(const std::vector<std::shared_ptr<Call>>& calls);

/// Queues the calls as one operation, which all their streams wait for.
void issue_group(std::vector<std::shared_ptr<Call>> calls);

std::size_t size_of(ncclDataType_t type);

}  // namespace emulation
