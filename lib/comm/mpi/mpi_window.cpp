// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/mpi_window.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/call_account.hpp"
#include "comm/failure/job_end.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

/// The MPI type of a column-major block with gaps between its columns. MPI keeps a freed type for as long as
/// a pending call needs it.
class BlockType {
 public:
  BlockType(int rows, int cols, int stride, MPI_Datatype element) {
    MPI_Type_vector(cols, rows, stride, element, &type_);
    MPI_Type_commit(&type_);
  }
  ~BlockType() { MPI_Type_free(&type_); }
  BlockType(const BlockType&) = delete;
  BlockType& operator=(const BlockType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// MPI_Rget from attached memory. Open MPI 5 (osc/rdma) reads an owner's table of attached memory while the
/// owner may change it, and then misses memory that is attached all the time: asks again, for a second.
int get_attached(void* to, int count, MPI_Datatype type, int owner, MPI_Aint from, int items,
                 MPI_Datatype item, MPI_Win window, MPI_Request* request) {
  for (int attempts_left = 1000;; --attempts_left) {
    const int code = MPI_Rget(to, count, type, owner, from, items, item, window, request);
    int kind = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
    if (kind != MPI_ERR_RMA_RANGE || attempts_left == 0) return code;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// MPI calls this at the beginning of MPI_Finalize, which all ranks reach. They free the windows in the order
/// of their creation, which is the same on any two ranks that share some.
int free_windows(MPI_Comm, int, void* windows, void*) {
  for (MPI_Win window : *static_cast<std::vector<MPI_Win>*>(windows)) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }
  return MPI_SUCCESS;
}

void free_when_mpi_ends(MPI_Win window) {
  static std::vector<MPI_Win> windows;
  if (windows.empty()) {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_windows, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &windows);
    MPI_Comm_free_keyval(&key);
  }
  windows.push_back(window);
}

}  // namespace

// A single rank gets nothing from others, and Open MPI may have no window for it.
MpiWindow::MpiWindow(const MpiGroup& group) : group_(group) {
  if (group.size == 1) return;
  const BlockingCall call(group);
  call.run("MPI_Win_create_dynamic", 0, MPI_Win_create_dynamic, MPI_INFO_NULL, group.comm, &window_);
  group.check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler", 0);
  call.run("MPI_Win_lock_all", 0, MPI_Win_lock_all, MPI_MODE_NOCHECK, window_);
  free_when_mpi_ends(window_);
}

MpiWindow::~MpiWindow() {
  if (mpi_is_running())
    for (const auto& [memory, region] : regions_) MPI_Win_detach(window_, memory);
}

void MpiWindow::synchronize() {
  if (window_ != MPI_WIN_NULL) group_.check(MPI_Win_sync(window_), "MPI_Win_sync", 0);
}

bool MpiWindow::attach(const void* memory, Index bytes) {
  if (window_ == MPI_WIN_NULL) return true;
  const auto* const begin = static_cast<const std::byte*>(memory);
  const auto next = regions_.lower_bound(begin);
  if (next != regions_.end() && next->first == begin && next->second.bytes == bytes) {
    ++next->second.users;
    return true;
  }
  if (next != regions_.end() && next->first < begin + bytes) return false;
  if (next != regions_.begin()) {
    const auto& [before, region] = *std::prev(next);
    if (begin < before + region.bytes) return false;
  }
  group_.check(MPI_Win_attach(window_, const_cast<void*>(memory), static_cast<MPI_Aint>(bytes)),
               "MPI_Win_attach", bytes);
  regions_[begin] = {bytes, 1};
  return true;
}

void MpiWindow::detach(const void* memory) {
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  if (found == regions_.end() || --found->second.users > 0) return;
  regions_.erase(found);
  MPI_Win_detach(window_, memory);
}

RmaWindow::RmaWindow(Communicator& comm, const MpiGroup& group, std::shared_ptr<MpiWindow> window)
    : comm_(comm), group_(group), window_(std::move(window)), ranks_(static_cast<std::size_t>(comm.size())) {
  std::array<std::int32_t, 1> mine{window_->group().rank};
  comm.all_gather(mine, ranks_);
}

bool RmaWindow::attach(const void* memory, Index bytes, bool is_new_user) {
  Attachment& attachment = attachments_[memory];
  if (attachment.is_attached && attachment.bytes != bytes) return false;
  if (!attachment.is_attached) attachment.is_attached = window_->attach(memory, bytes);
  attachment.bytes = bytes;
  if (is_new_user && attachment.is_attached) ++attachment.users;
  attachment.round = round_;
  const bool is_attached = attachment.is_attached;
  if (attachment.users == 0) attachments_.erase(memory);
  return is_attached;
}

void RmaWindow::detach(const void* memory) {
  const auto found = attachments_.find(memory);
  if (found == attachments_.end() || --found->second.users > 0) return;
  if (found->second.is_attached) window_->detach(memory);
  attachments_.erase(found);
}

std::vector<RmaWindow::RemoteBlock> RmaWindow::publish(const void* mine, Index stride) {
  MPI_Aint address = 0;
  if (mine != nullptr) group_.check(MPI_Get_address(mine, &address), "MPI_Get_address", 1);
  window_->synchronize();
  std::array<Index, 2> own{address, stride};
  std::vector<Index> all(own.size() * ranks_.size());
  comm_.all_gather(own, all);
  for (auto& [memory, attachment] : attachments_)
    if (!holds(attachment.round) && std::exchange(attachment.is_attached, false)) window_->detach(memory);
  std::vector<RemoteBlock> blocks;
  for (std::size_t k = 0; k < all.size(); k += own.size()) blocks.push_back({all[k], all[k + 1]});
  return blocks;
}

Request RmaWindow::start_get(int rank, Index address, Index rows, Index cols, Index stride, Elements into) {
  auto transfer = std::make_unique<MpiTransfer>(group_);
  const Elements target = as_reals(into);
  const MPI_Datatype real = mpi_type(target.type);
  const int owner = ranks_[at(rank)];
  const Index height = rows * into.reals_per_element, step = stride * into.reals_per_element;
  const auto get = [&](Index to, Index from, Index count, int items, MPI_Datatype item) {
    const auto origin = static_cast<MPI_Aint>(address + from * size_of(target.type));
    transfer->start("MPI_Rget", static_cast<int>(count), get_attached, slice(target, to, count).data,
                    static_cast<int>(count), real, owner, origin, items, item, window_->handle());
  };
  if (height == step || cols == 1) {
    for_each_chunk(height * cols, [&](Index begin, int count) { get(begin, begin, count, count, real); });
  } else if (step <= max_message_elements) {
    const Index together = max_message_elements / step;
    for (Index j = 0; j < cols; j += together) {
      const Index columns = std::min(together, cols - j);
      const BlockType block(static_cast<int>(height), static_cast<int>(columns), static_cast<int>(step),
                            real);
      if (height > 0) get(j * height, j * step, columns * height, 1, block.get());
    }
  } else {
    for (Index j = 0; j < cols; ++j)
      for_each_chunk(height, [&](Index begin, int count) {
        get(j * height + begin, j * step + begin, count, count, real);
      });
  }
  return CallAccount(comm_).start_get(std::move(transfer), into.bytes());
}

std::shared_ptr<MpiWindow> open_window(Communicator& comm, const MpiGroup& group) {
  try {
    std::shared_ptr<MpiWindow> window;
    attempt(comm, [&] { window = std::make_shared<MpiWindow>(group); });
    RmaWindow trial(comm, group, window);
    const Index mine = comm.rank();
    trial.begin_round();
    attempt(comm, [&] { trial.attach(&mine, sizeof mine, true); });
    const std::vector<RmaWindow::RemoteBlock> blocks = trial.publish(&mine, 1);
    attempt(comm, [&] {
      for (int rank = 0; rank < comm.size(); ++rank) {
        if (rank == comm.rank()) continue;
        std::array<Index, 1> found{-1};
        trial.start_get(rank, blocks[at(rank)].address, 1, 1, 1, found).wait();
        require<CommunicationError>(found[0] == rank, "rank ", rank, " shows ", rank, ", and others get ",
                                    found[0]);
      }
    });
    trial.detach(&mine);
    return window;
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;
    throw UsageError(message(
        "the transport one-sided needs windows, which MPI refuses here: ", error.what(),
        "; Open MPI 4 has them by messages: start it with --mca osc sm,pt2pt, or use the transport mpi"));
  }
}

}  // namespace gridlops
