// SPDX-License-Identifier: BSD-3-Clause
#include "comm/peer_window.hpp"

#include "base/message.hpp"
#include "comm/mpi_transfer.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

namespace {

/// A column-major block with gaps between its columns, as MPI knows it. Freed at once: MPI keeps it as long
/// as it needs it.
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

}  // namespace

PeerWindow::PeerWindow(const MpiGroup& group, std::shared_ptr<Traffic> account)
    : group_(group), account_(std::move(account)) {
  group.check(MPI_Win_create_dynamic(MPI_INFO_NULL, group.comm, &window_), "MPI_Win_create_dynamic", 0);
  group.check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler", 0);
  group.check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all", 0);
}

PeerWindow::~PeerWindow() {
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

bool PeerWindow::expose(const void* memory, Index bytes) {
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

void PeerWindow::hide(const void* memory) {
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  if (found == regions_.end() || --found->second.users > 0) return;
  regions_.erase(found);
  MPI_Win_detach(window_, memory);
}

Index PeerWindow::address_of(const void* memory) const {
  MPI_Aint address = 0;
  group_.check(MPI_Get_address(memory, &address), "MPI_Get_address", 1);
  return address;
}

void PeerWindow::publish() { group_.check(MPI_Win_sync(window_), "MPI_Win_sync", 0); }

Request PeerWindow::start_get(int rank, Index address, Index rows, Index cols, Index stride, Elements into) {
  auto transfer = std::make_unique<MpiTransfer>(group_, nullptr);
  const Elements target = as_reals(into);
  const MPI_Datatype real = mpi_type(target.type);
  const Index height = rows * into.reals_per_element, step = stride * into.reals_per_element;
  const auto get = [&](Index to, Index from, Index count, int blocks, MPI_Datatype block) {
    const auto place = static_cast<MPI_Aint>(address + from * size_of(target.type));
    transfer->start("MPI_Rget", static_cast<int>(count), [&](MPI_Request* request) {
      return MPI_Rget(slice(target, to, count).data, static_cast<int>(count), real, rank, place, blocks,
                      block, window_, request);
    });
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
  account_->bytes_received += into.bytes();
  ++account_->calls[static_cast<std::size_t>(CommOperation::get)];
  return Request(std::move(transfer), account_);
}

}  // namespace gridlops
