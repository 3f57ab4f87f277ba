// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/mpi_device_test.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "gridlops/buffer.hpp"
#include "gridlops/gpu.hpp"

namespace gridlops::cuda {

namespace {

constexpr std::array<Index, 2> message_lengths{24, Index{1} << 17};  // 96 bytes and half a megabyte

bool all_agree(Communicator& host, bool mine) {
  std::array<std::int32_t, 1> least{mine ? 1 : 0};
  host.all_reduce(least, ReduceOp::min);
  return least[0] == 1;
}

bool is_wanted() {
  const char* way = std::getenv("GRIDLOPS_DEVICE_MPI");
  return way == nullptr || std::string(way) != "staged";
}

/// What rank sends.
std::vector<std::int32_t> pattern(int rank, Index length) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(length));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<std::int32_t>(k * 7919 + static_cast<std::size_t>(rank) * 104729 + 1);
  return values;
}

/// Device memory of the kind that matrices have: some MPI libraries take only what other functions allocate.
class Trial {
 public:
  Trial(Communicator& host, Backend& backend, Index length)
      : host_(host),
        backend_(backend),
        length_(length),
        bytes_(length * host.size() * Index{sizeof(std::int32_t)}),
        memory_(static_cast<std::int32_t*>(backend.allocate(bytes_))) {}
  ~Trial() { backend_.release(memory_); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Every rank's pattern in one place after the other.
  bool gathers() {
    put(host_.rank(), pattern(host_.rank(), length_));
    host_.all_gather(part(host_.rank()), Elements(memory_, length_ * host_.size(), ElementType::i32));
    bool is_right = true;
    for (int rank = 0; rank < host_.size(); ++rank)
      is_right = is_right && holds(rank, pattern(rank, length_));
    return is_right;
  }

  /// The last rank's pattern everywhere.
  bool broadcasts() {
    const int root = host_.size() - 1;
    put(0, pattern(host_.rank(), length_));
    host_.broadcast(part(0), root);
    return holds(0, pattern(root, length_));
  }

  /// Around in a ring, blocking and not.
  bool passes_on() {
    const int next = (host_.rank() + 1) % host_.size(),
              previous = (host_.rank() + host_.size() - 1) % host_.size();
    if (next == host_.rank()) return true;
    put(0, pattern(host_.rank(), length_));
    put(1, pattern(-1, length_));
    host_.send_receive(part(0), next, part(1), previous);
    return holds(1, pattern(previous, length_));
  }

 private:
  std::int32_t* place(int part) const { return memory_ + part * length_; }
  Elements part(int k) const { return {place(k), length_, ElementType::i32}; }
  Index part_bytes() const { return length_ * Index{sizeof(std::int32_t)}; }

  void put(int k, const std::vector<std::int32_t>& values) {
    backend_.upload(values.data(), place(k), part_bytes());
    backend_.synchronize();
  }
  bool holds(int k, const std::vector<std::int32_t>& values) {
    std::vector<std::int32_t> found(values.size());
    backend_.download(place(k), found.data(), part_bytes());
    return found == values;
  }

  Communicator& host_;
  Backend& backend_;
  Index length_, bytes_;
  std::int32_t* memory_;
};

}  // namespace

bool mpi_takes_device_memory(Communicator& host, Backend& backend) {
  if (!all_agree(host, mpi_claims_device_memory() && is_wanted())) return false;
  bool is_right = true;
  for (const Index length : message_lengths) {
    std::unique_ptr<Trial> trial;
    succeed_together(host, [&] { trial = std::make_unique<Trial>(host, backend, length); });
    // All of them on every rank, whatever the one before has shown here.
    for (bool (Trial::*operation)() : {&Trial::gathers, &Trial::broadcasts, &Trial::passes_on})
      is_right = (*trial.*operation)() && is_right;
  }
  return all_agree(host, is_right);
}

}  // namespace gridlops::cuda
