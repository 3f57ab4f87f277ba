// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi_call.hpp"

namespace gridlops {

/// MPI requests under way, then perhaps a step on this rank alone. No message waits for that step, so that
/// ranks may complete several operations in different orders, or do something else first.
class MpiTransfer final : public PendingOperation {
 public:
  explicit MpiTransfer(const MpiGroup& group) : group_(group) {}
  ~MpiTransfer() override;
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  /// Where the next MPI_I… call puts its request.
  MPI_Request* request();
  /// Messages of arrays of reals, in chunks; nothing at all is sent for an empty array.
  void send(const ConstElements& data, int destination, int tag);
  void receive(const Elements& data, int source, int tag);

  /// Memory that lives as long as the transfer.
  void* scratch(Index bytes);
  int* scratch_ints(int count) { return static_cast<int*>(scratch(count * Index{sizeof(int)})); }

  /// What is to be done when all requests are complete. It must not communicate.
  void then(std::function<void()> last_step) { last_step_ = std::move(last_step); }

  bool is_complete() const { return requests_.empty() && last_step_ == nullptr; }
  void wait() override;
  bool test() override;

 private:
  /// What a receive expects; count −1 stands for any other request.
  struct Expected {
    MPI_Datatype type = MPI_BYTE;
    int count = -1;
    int source = -1;
  };

  void check_statuses(int code, const std::vector<MPI_Status>& statuses, const char* call) const;
  void complete();

  MpiGroup group_;
  std::vector<MPI_Request> requests_;
  std::vector<Expected> expected_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::function<void()> last_step_;
};

}  // namespace gridlops
