// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/nccl/nccl_communicator.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "emulation/report.hpp"

const char* ncclComm::memory_of(int other, std::size_t offset) const {
  const emulation::Segment::Process& process = segment->processes[static_cast<std::size_t>(other)];
  return emulation::peer_memory(process.id, process.device_file) + offset;
}

void ncclComm::post(const std::array<long, 4>& mine) {
  emulation::Segment::Mail& own = segment->mail[static_cast<std::size_t>(rank)];
  own.words[static_cast<std::size_t>(++rounds % 2)] = mine;
  own.round = rounds;
}

bool ncclComm::have_all_posted() const {
  return std::all_of(segment->mail.begin(), segment->mail.begin() + size,
                     [&](const emulation::Segment::Mail& mail) { return mail.round >= rounds; });
}

std::vector<std::array<long, 4>> ncclComm::posts() const {
  std::vector<std::array<long, 4>> all;
  for (int peer = 0; peer < size; ++peer)
    all.push_back(segment->mail[static_cast<std::size_t>(peer)].words[static_cast<std::size_t>(rounds % 2)]);
  return all;
}

std::vector<std::array<long, 4>> ncclComm::exchange(const char* function, const std::array<long, 4>& mine) {
  post(mine);
  const bool is_whole = emulation::wait_in_host(
      function, [this] { return have_all_posted(); }, [this] { return is_given_up(); });
  return is_whole ? posts() : std::vector<std::array<long, 4>>();
}

void ncclComm::require_quiet(const char* function) const {
  const emulation::Lock lock(emulation::device().mutex);
  if (last != nullptr && !last->done)
    emulation::end_with_report(
        emulation::text_of(function, " while '", *last->label, "' is under way on the communicator"));
}

namespace emulation {

ncclComm_t join(const SegmentName& name, int size, int rank) {
  if (size > most_ranks) end_with_report(text_of("a communicator of ", size, " ranks, at most ", most_ranks));
  Device& gpu = device();
  auto* comm = new ncclComm;
  comm->segment = open_segment(name);
  comm->rank = rank;
  comm->device = current_device();
  comm->size = size;
  comm->segment->processes[static_cast<std::size_t>(rank)] = {getpid(), gpu.memory.file()};
  comm->name = name;
  ++comm->segment->joined;
  const Lock lock(gpu.mutex);
  comm->outermost = gpu.communicators == 0;
  if (comm->outermost) order_of_issue().clear();
  ++gpu.communicators;
  return comm;
}

bool have_all_joined(ncclComm& comm) {
  if (comm.segment->joined < comm.size) return false;
  // All have opened the file.
  if (comm.name.process == getpid() && comm.name.file >= 0) close(std::exchange(comm.name.file, -1));
  return true;
}

std::vector<Issued>& order_of_issue() {
  static std::vector<Issued> order;
  return order;
}

namespace {

/// The orders of all ranks, on rank 0. Other ranks have an empty list.
std::vector<std::vector<Issued>> gather_orders(ncclComm& comm) {
  const std::vector<Issued>& mine = order_of_issue();
  const int file = memfd_create("gridlops-order", 0);
  const auto bytes = static_cast<ssize_t>(mine.size() * sizeof(Issued));
  if (file < 0 || write(file, mine.data(), static_cast<std::size_t>(bytes)) != bytes)
    end_with_report("the order of operations cannot be written");
  const auto files = comm.exchange("ncclCommDestroy", {getpid(), file, static_cast<long>(mine.size()), 0});
  std::vector<std::vector<Issued>> all(static_cast<std::size_t>(comm.size));
  for (std::size_t rank = 0; rank < files.size() && comm.rank == 0; ++rank) {
    const auto [process, number, count, unused] = files[rank];
    all[rank].resize(static_cast<std::size_t>(count));
    const std::string path = text_of("/proc/", process, "/fd/", number);
    std::FILE* peer = std::fopen(path.c_str(), "rb");
    if (peer == nullptr ||
        std::fread(all[rank].data(), sizeof(Issued), all[rank].size(), peer) != all[rank].size())
      end_with_report("cannot read " + path);
    std::fclose(peer);
  }
  comm.exchange("ncclCommDestroy", {});
  close(file);
  return all;
}

/// A graph that has an edge from each operation to those that come after it. A node between two groups stands
/// for the edges from every operation of the first to every one of the second.
class Precedence {
 public:
  void add(const std::vector<Issued>& order, long rank) {
    std::size_t begin = 0;
    int gate = -1;
    for (std::size_t end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && order[end].group == order[begin].group) ++end;
      const int next_gate = node({-1 - rank, order[begin].group});
      for (std::size_t i = begin; i < end; ++i) {
        const int operation = node({order[i].communicator, order[i].number});
        if (gate >= 0) edge(gate, operation);
        edge(operation, next_gate);
      }
      gate = next_gate;
    }
  }

  /// The number of operations that fit into no order.
  std::size_t on_cycles() {
    std::deque<std::size_t> free;
    for (std::size_t i = 0; i < followers_.size(); ++i)
      if (waits_for_[i] == 0) free.push_back(i);
    std::size_t ordered = 0;
    for (; !free.empty(); free.pop_front(), ++ordered)
      for (const int follower : followers_[free.front()])
        if (--waits_for_[static_cast<std::size_t>(follower)] == 0)
          free.push_back(static_cast<std::size_t>(follower));
    return followers_.size() - ordered;
  }

 private:
  int node(std::pair<long, long> name) {
    const auto [place, is_new] = numbers_.try_emplace(name, static_cast<int>(numbers_.size()));
    if (is_new) {
      followers_.emplace_back();
      waits_for_.push_back(0);
    }
    return place->second;
  }
  void edge(int from, int to) {
    followers_[static_cast<std::size_t>(from)].push_back(to);
    ++waits_for_[static_cast<std::size_t>(to)];
  }

  std::map<std::pair<long, long>, int> numbers_;
  std::vector<std::vector<int>> followers_;
  std::vector<int> waits_for_;
};

}  // namespace

void compare_orders(ncclComm& comm) {
  const std::vector<std::vector<Issued>> orders = gather_orders(comm);
  Precedence precedence;
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    precedence.add(orders[rank], static_cast<long>(rank));
  if (const std::size_t count = precedence.on_cycles(); count > 0)
    violation(
        Detector::orders, "order: ", count,
        " operations lie on cycles: ranks issue those of different communicators in orders that contradict "
        "each other, so that all may wait for ever");
  order_of_issue().clear();
}

}  // namespace emulation
