// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/chain_communicator.hpp"

#include <algorithm>

#include "comm/failure/watched_wait.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

/// A piece of 256 KiB stays in the second-level cache between its arrival and its departure.
constexpr Index piece_bytes = Index{256} << 10;

Index piece_elements(ElementType type) { return std::min(piece_bytes / size_of(type), max_message_elements); }

}  // namespace

// Tests cut messages into smaller pieces; then the threshold shrinks with them.
bool ChainBroadcasts::is_faster(const Elements& reals, int ranks) const {
  return ranks >= chain_least_ranks && reals.count > 0 &&
         reals.count >= least_bytes_ / piece_bytes * piece_elements(reals.type);
}

class ChainBroadcasts::Broadcast final : public PendingOperation {
 public:
  Broadcast(ChainBroadcasts& all, const MpiGroup& group, const Elements& reals, int root, int tag)
      : all_(all), group_(group), reals_(reals), tag_(tag) {
    const int position = (group.rank - root + group.size) % group.size;
    if (position > 0) previous_ = (group.rank - 1 + group.size) % group.size;
    if (position < group.size - 1) next_ = (group.rank + 1) % group.size;
    pieces_ = static_cast<std::size_t>((reals.count + width() - 1) / width());
    all.running_.push_back(this);
    if (previous_ < 0) return;
    for (std::size_t k = 0; k < pieces_; ++k) {
      const Elements piece = piece_at(k);
      group_.check(MPI_Irecv(piece.data, static_cast<int>(piece.count), mpi_type(piece.type), previous_, tag_,
                             group_.comm, &arrivals_.emplace_back(MPI_REQUEST_NULL)),
                   "MPI_Irecv", piece.count);
    }
  }
  ~Broadcast() override {
    std::erase(all_.running_, this);
    if (!is_complete()) let_go(arrivals_, departures_);
  }

  void wait() override { all_.wait_for(*this); }

  bool test() override {
    while (arrived_ < pieces_ && has_arrived(arrived_)) send_on(arrived_++);
    while (departed_ < departures_.size() && is_done(departures_[departed_], "MPI_Isend")) ++departed_;
    if (is_complete()) std::erase(all_.running_, this);
    return is_complete();
  }

 private:
  bool is_complete() const { return arrived_ == pieces_ && departed_ == departures_.size(); }
  Index width() const { return piece_elements(reals_.type); }
  Elements piece_at(std::size_t k) const {
    const Index begin = static_cast<Index>(k) * width();
    return slice(reals_, begin, std::min(width(), reals_.count - begin));
  }
  bool has_arrived(std::size_t k) { return previous_ < 0 || is_done(arrivals_[k], "MPI_Irecv"); }
  bool is_done(MPI_Request& request, const char* call) const {
    int done = 0;
    group_.check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call, reals_.count);
    return done != 0;
  }
  void send_on(std::size_t k) {
    if (next_ < 0) return;
    const Elements piece = piece_at(k);
    group_.check(MPI_Isend(piece.data, static_cast<int>(piece.count), mpi_type(piece.type), next_, tag_,
                           group_.comm, &departures_.emplace_back(MPI_REQUEST_NULL)),
                 "MPI_Isend", piece.count);
  }

  ChainBroadcasts& all_;
  MpiGroup group_;
  Elements reals_;
  int tag_;
  int previous_ = -1, next_ = -1;  // the neighbours' ranks; negative at the ends of the chain
  std::size_t pieces_ = 0, arrived_ = 0, departed_ = 0;
  std::vector<MPI_Request> arrivals_, departures_;
};

std::unique_ptr<PendingOperation> ChainBroadcasts::start(const MpiGroup& group, const Elements& reals,
                                                         int root, int tag) {
  auto broadcast = std::make_unique<Broadcast>(*this, group, reals, root, tag);
  if (broadcast->test()) return nullptr;
  return broadcast;
}

// A completed broadcast removes itself from the list.
void ChainBroadcasts::progress() {
  for (std::size_t k = running_.size(); k > 0; --k) running_[k - 1]->test();
}

void ChainBroadcasts::wait_for(PendingOperation& operation) {
  wait_until([&] {
    progress();
    return operation.test();
  });
}

void ChainBroadcasts::drain() {
  wait_until([this] {
    progress();
    return running_.empty();
  });
}

}  // namespace gridlops
