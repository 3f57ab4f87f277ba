// SPDX-License-Identifier: BSD-3-Clause
// Implements NCCL's functions. The ranks of a communicator are processes of one machine and read each other's
// memory.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <set>
#include <string>
#include <utility>

#include "emulation/nccl/nccl_calls.hpp"
#include "emulation/report.hpp"

using emulation::Kind;
using emulation::SegmentName;

namespace {

thread_local int group_depth = 0;
thread_local std::vector<std::shared_ptr<emulation::Call>> group;
thread_local ncclResult_t group_error = ncclSuccess;
thread_local std::set<int> devices_with_aborts;  // of this group

/// With NCCL_COMM_BLOCKING=0 calls return ncclInProgress and continue in the background. The communicator
/// takes no other call until ncclCommGetAsyncError() says that this one is done.
bool is_blocking() {
  const char* text = std::getenv("NCCL_COMM_BLOCKING");
  return text == nullptr || std::string(text) != "0";
}

using Clock = std::chrono::steady_clock;
struct Background {
  std::vector<ncclComm_t> comms;  // that are busy with it
  std::function<bool()> step;
  Clock::time_point due;
};
std::list<Background> background;

bool is_one_given_up(const std::vector<ncclComm_t>& comms) {
  return std::any_of(comms.begin(), comms.end(), [](ncclComm_t comm) { return comm->is_given_up(); });
}

/// Makes a call, which is over when step() returns true, now or in the background. The host waits for peers
/// until then, or until one of them gives up.
ncclResult_t carry_out(const char* function, const std::vector<ncclComm_t>& comms,
                       std::function<bool()> step) {
  if (comms.empty()) return ncclSuccess;
  if (is_blocking()) {
    const bool is_over = emulation::wait_in_host(function, step, [&] { return is_one_given_up(comms); });
    return is_over ? ncclSuccess : ncclRemoteError;
  }
  const emulation::Lock lock(emulation::device().mutex);
  for (const ncclComm_t comm : comms) comm->busy = true;
  background.push_back({comms, std::move(step), Clock::now() + std::chrono::milliseconds(1)});
  return ncclInProgress;
}

/// Goes on with the calls that are due.
void go_on() {
  const emulation::Lock lock(emulation::device().mutex);
  for (auto task = background.begin(); task != background.end();) {
    if (is_one_given_up(task->comms)) {
      task = background.erase(task);
    } else if (task->due > Clock::now() || !task->step()) {
      ++task;
    } else {
      for (const ncclComm_t comm : task->comms) comm->busy = false;
      task = background.erase(task);
    }
  }
}

ncclResult_t issue(const char* function, const std::vector<std::shared_ptr<emulation::Call>>& calls) {
  std::vector<ncclComm_t> comms;
  for (const auto& call : calls) comms.push_back(call->comm());
  return carry_out(function, comms, [calls] {
    if (!emulation::are_connected(calls)) return false;
    emulation::issue_group(calls);
    return true;
  });
}

bool may_be_called(ncclComm_t comm, const char* function) {
  if (comm == nullptr || comm->dead || comm->busy) return false;
  emulation::require_current(comm->device, function, ": a communicator");
  return true;
}

ncclResult_t start(const char* function, Kind kind, const void* from, void* to, std::size_t count,
                   ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  ncclResult_t error = ncclSuccess;
  if (emulation::enter(function)) {
    error = ncclInternalError;
  } else if (!may_be_called(comm, function) || root < 0 || root >= comm->size) {
    error = ncclInvalidArgument;
  }
  if (error != ncclSuccess) {
    if (group_depth > 0) group_error = error;
    return error;
  }
  // NCCL also drops an empty collective at once, whatever the other ranks have.
  if (count == 0 && kind != Kind::send && kind != Kind::receive) return ncclSuccess;
  group.push_back(std::make_shared<emulation::Call>(kind, from, to, count, type, op, root, comm, stream));
  return group_depth == 0 ? issue(function, std::exchange(group, {})) : ncclSuccess;
}

/// The ranks of one colour in their new order.
std::vector<int> ranks_of(const std::vector<std::array<long, 4>>& arguments, long color) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < arguments.size(); ++rank)
    if (arguments[rank][0] == color) members.push_back(static_cast<int>(rank));
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return arguments[static_cast<std::size_t>(a)][1] < arguments[static_cast<std::size_t>(b)][1];
  });
  return members;
}

/// Makes a child of this rank's colour. Each step of it goes as far as the other ranks have come.
class Split {
 public:
  Split(ncclComm_t parent, int color, int key, ncclComm_t* child)
      : parent_(parent), joins_(color != NCCL_SPLIT_NOCOLOR), color_(color), child_(child) {
    parent_->post({color, key, 0, 0});
  }

  bool step() {
    if (stage_ == 0) {
      if (!parent_->have_all_posted()) return false;
      members_ = ranks_of(parent_->posts(), color_);
      SegmentName name;
      if (joins_ && members_.front() == parent_->rank) name = emulation::make_segment();
      parent_->post({name.process, name.file, name.uid, 0});
      stage_ = 1;
    }
    if (stage_ == 1) {
      if (!parent_->have_all_posted()) return false;
      if (!joins_) return true;
      const std::array<long, 4> first = parent_->posts()[static_cast<std::size_t>(members_.front())];
      const auto own_place = std::find(members_.begin(), members_.end(), parent_->rank);
      made_ =
          emulation::join({static_cast<int>(first[0]), static_cast<int>(first[1]), first[2]},
                          static_cast<int>(members_.size()), static_cast<int>(own_place - members_.begin()));
      stage_ = 2;
    }
    if (!emulation::have_all_joined(*made_)) return false;
    *child_ = made_;
    return true;
  }

 private:
  ncclComm_t parent_;
  bool joins_;
  int color_;
  ncclComm_t* child_;
  int stage_ = 0;
  std::vector<int> members_;
  ncclComm_t made_ = nullptr;
};

/// Freeing memory waits for all work of the device, also for that of other communicators.
void free_aborted() {
  for (const int device : std::exchange(devices_with_aborts, {}))
    emulation::device().wait_for_all(device, "ncclCommAbort");
}

void forget_one() {
  const emulation::Lock lock(emulation::device().mutex);
  --emulation::device().communicators;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess       ? "no error"
         : result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "internal error";
}
const char* ncclGetLastError(ncclComm_t) { return "an emulated failure"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (emulation::enter("ncclGetUniqueId")) return ncclInternalError;
  const SegmentName name = emulation::make_segment();
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, &name, sizeof(name));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  if (emulation::enter("ncclCommInitRank")) return ncclInternalError;
  SegmentName name;
  std::memcpy(&name, id.internal, sizeof(name));
  *comm = emulation::join(name, size, rank);
  return carry_out("ncclCommInitRank", {*comm}, [made = *comm] { return emulation::have_all_joined(*made); });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  if (emulation::enter("ncclCommSplit")) return ncclInternalError;
  if (!may_be_called(comm, "ncclCommSplit")) return ncclInvalidArgument;
  *child = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) return ncclInvalidArgument;
  comm->require_quiet("ncclCommSplit");
  const ncclResult_t result =
      carry_out("ncclCommSplit", {comm},
                [split = std::make_shared<Split>(comm, color, key, child)] { return split->step(); });
  // As NCCL 2.28 has it: only the parent tells that this still goes on.
  return result == ncclInProgress ? ncclSuccess : result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (emulation::enter("ncclCommDestroy")) return ncclInternalError;
  if (!comm->dead) {
    if (!may_be_called(comm, "ncclCommDestroy")) return ncclInvalidArgument;
    comm->require_quiet("ncclCommDestroy");
    const auto counts = comm->exchange("ncclCommDestroy", {comm->issued, 0, 0, 0});
    for (const auto& count : counts)
      if (count[0] != comm->issued)
        emulation::violation(emulation::Detector::signatures, "ranks end a communicator after ", comm->issued,
                             " and ", count[0], " collective operations: one of them skipped some");
    if (comm->outermost) emulation::compare_orders(*comm);
    forget_one();
    emulation::close_segment(comm->segment);
  }
  delete comm;
  return ncclSuccess;
}

// Operations of the communicator end at once, its memory is freed at the end of the group.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (emulation::enter("ncclCommAbort")) return ncclInternalError;
  {
    const emulation::Lock lock(emulation::device().mutex);
    comm->segment->aborted = 1;
    if (!comm->dead) forget_one();
    comm->dead = true;  // queued operations still refer to it
  }
  devices_with_aborts.insert(comm->device);
  if (group_depth == 0) free_aborted();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (emulation::enter("ncclCommGetAsyncError")) return ncclInternalError;
  go_on();
  *error = comm->segment->aborted != 0 ? ncclRemoteError : comm->busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  if (emulation::enter("ncclCommCount")) return ncclInternalError;
  if (!may_be_called(comm, "ncclCommCount")) return ncclInvalidArgument;
  *count = comm->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  if (emulation::enter("ncclCommUserRank")) return ncclInternalError;
  if (!may_be_called(comm, "ncclCommUserRank")) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (emulation::enter("ncclGroupStart")) return ncclInternalError;
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (emulation::enter("ncclGroupEnd")) return ncclInternalError;
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  free_aborted();
  const auto calls = std::exchange(group, {});
  const ncclResult_t error = std::exchange(group_error, ncclSuccess);
  return error == ncclSuccess ? issue("ncclGroupEnd", calls) : error;
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return start("ncclBroadcast", Kind::broadcast, from, to, count, type, ncclSum, root, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return start("ncclReduce", Kind::reduce, from, to, count, type, op, root, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return start("ncclAllReduce", Kind::all_reduce, from, to, count, type, op, 0, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return start("ncclAllGather", Kind::all_gather, from, to, count, type, ncclSum, 0, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return start("ncclReduceScatter", Kind::reduce_scatter, from, to, count, type, op, 0, comm, stream);
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return start("ncclSend", Kind::send, from, nullptr, count, type, ncclSum, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return start("ncclRecv", Kind::receive, nullptr, to, count, type, ncclSum, peer, comm, stream);
}

}  // extern "C"
