// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi_call.hpp"
#include "comm/relays.hpp"

namespace gridlops {

/// MPI requests under way, then perhaps a step on this rank alone. No message waits for that step, so that
/// ranks may complete several operations in different orders, or do something else first.
class MpiTransfer final : public PendingOperation {
 public:
  /// While it waits, relays (or null) advance.
  MpiTransfer(const MpiGroup& group, Relays* relays) : group_(group), relays_(relays) {}
  ~MpiTransfer() override;
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  /// begin(request) makes a non-blocking MPI call, which errors, now or at completion, name `call`.
  template <class Begin>
  void start(const char* call, int count, Begin&& begin) {
    Part& part = parts_.emplace_back(Part{.call = call, .count = count});
    group_.check(begin(&part.request), call, count);
  }
  /// Messages of arrays of reals, in chunks; nothing at all is sent for an empty array.
  void send(const ConstElements& data, int destination, int tag);
  void receive(const Elements& data, int source, int tag);

  /// Memory that lives as long as the transfer.
  void* scratch(Index bytes);
  int* scratch_ints(int count) { return static_cast<int*>(scratch(count * Index{sizeof(int)})); }

  /// What is to be done when all requests are complete. It must not communicate.
  void then(std::function<void()> last_step) { last_step_ = std::move(last_step); }

  bool is_complete() const { return parts_.empty() && last_step_ == nullptr; }
  void wait() override;
  bool test() override;

 private:
  struct Part {
    MPI_Request request = MPI_REQUEST_NULL;
    const char* call = "";
    int count = 0;
    int source = -1;  ///< of a receive, which must get `count` elements of `type`
    MPI_Datatype type = MPI_BYTE;
  };

  void check(const Part& part, int code, const MPI_Status& status) const;
  void complete();

  MpiGroup group_;
  Relays* relays_;
  std::vector<Part> parts_;
  std::size_t parts_done_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::function<void()> last_step_;
};

}  // namespace gridlops
