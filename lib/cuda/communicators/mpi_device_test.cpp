// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/communicators/staged_communicator.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "comm/mpi/device_memory.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops::cuda {

namespace {

constexpr std::array<Index, 2> message_lengths{24, Index{1} << 17};  // 96 bytes and half a megabyte

bool all_agree(Communicator& host, bool mine) {
  std::array<std::int32_t, 1> least{mine ? 1 : 0};
  host.all_reduce(least, ReduceOp::min);
  return least[0] == 1;
}

/// The data that a rank sends.
std::vector<std::int32_t> pattern(int rank, Index length) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(length));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<std::int32_t>(k * 7919 + static_cast<std::size_t>(rank) * 104729 + 1);
  return values;
}

/// Trial operations on memory of the backend, because some MPI libraries accept only memory that certain
/// functions allocate. The memory has room for two messages, and for one element of every rank.
class Trial {
 public:
  Trial(Communicator& host, Backend& backend, Index length)
      : host_(host),
        backend_(backend),
        length_(length),
        memory_(static_cast<std::int32_t*>(
            backend.allocate(bytes_of(std::max<Index>(2 * length, host.size()))))) {}
  ~Trial() { backend_.release(memory_); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Tries an all_gather whose parts are together as long as one message.
  bool gathers() {
    const Index part = std::max<Index>(1, length_ / host_.size());
    const Index mine = part * host_.rank();
    put(mine, pattern(host_.rank(), part));
    host_.all_gather(at(mine, part), at(0, part * host_.size()));
    bool is_right = true;
    for (int rank = 0; rank < host_.size(); ++rank)
      is_right = holds(part * rank, pattern(rank, part)) && is_right;
    return is_right;
  }

  /// Tries a broadcast of the last rank's message.
  bool broadcasts() {
    const int root = host_.size() - 1;
    put(0, pattern(host_.rank(), length_));
    host_.broadcast(at(0, length_), root);
    return holds(0, pattern(root, length_));
  }

  /// Tries messages around a ring.
  bool passes_on() {
    const int size = host_.size(), next = (host_.rank() + 1) % size,
              previous = (host_.rank() + size - 1) % size;
    put(0, pattern(host_.rank(), length_));
    put(length_, pattern(size, length_));
    host_.send_receive(at(0, length_), next, at(length_, length_), previous);
    return holds(length_, pattern(previous, length_));
  }

 private:
  static Index bytes_of(Index elements) { return elements * Index{sizeof(std::int32_t)}; }
  Elements at(Index place, Index count) const { return {memory_ + place, count, ElementType::i32}; }

  void put(Index place, const std::vector<std::int32_t>& values) {
    backend_.upload(values.data(), memory_ + place, bytes_of(static_cast<Index>(values.size())));
    backend_.synchronize();
  }
  bool holds(Index place, const std::vector<std::int32_t>& values) {
    std::vector<std::int32_t> found(values.size());
    backend_.download(memory_ + place, found.data(), bytes_of(static_cast<Index>(values.size())));
    return found == values;
  }

  Communicator& host_;
  Backend& backend_;
  Index length_;
  std::int32_t* memory_;
};

/// Whether a trial succeeds. An MPI that returns an error cannot move device memory.
bool succeeds(Trial& trial, bool (Trial::*operation)()) {
  try {
    return (trial.*operation)();
  } catch (const CommunicationError&) {
    return false;
  }
}

}  // namespace

bool mpi_takes_device_memory(Communicator& host, Backend& backend) {
  const bool may_try =
      attempt(host, [] { return may_give_mpi_device_memory() && mpi_claims_device_memory(); });
  if (!all_agree(host, may_try)) return false;
  // A failed trial may leave messages behind, so trials have their own communicators. Each rank first tries
  // alone, so that no rank waits for one whose MPI refuses.
  const auto alone = host.split(host.rank(), 0), together = host.split(0, host.rank());
  for (const Index length : message_lengths) {
    std::unique_ptr<Trial> mine, ours;
    attempt(host, [&] {
      mine = std::make_unique<Trial>(*alone, backend, length);
      ours = std::make_unique<Trial>(*together, backend, length);
    });
    if (!all_agree(host, succeeds(*mine, &Trial::passes_on))) return false;
    for (bool (Trial::*operation)() : {&Trial::gathers, &Trial::broadcasts, &Trial::passes_on})
      if (!all_agree(host, succeeds(*ours, operation))) return false;
  }
  return true;
}

}  // namespace gridlops::cuda
