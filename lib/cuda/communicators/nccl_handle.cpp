// SPDX-License-Identifier: BSD-3-Clause
#include "base/message.hpp"
#include "cuda/communicators/nccl_communicator.hpp"

namespace gridlops::cuda {

namespace {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1)
constexpr bool can_split = true;
ncclResult_t split_comm(ncclComm_t comm, int color, int key, ncclComm_t* child) {
  return ncclCommSplit(comm, color, key, child, nullptr);
}
constexpr int no_color = NCCL_SPLIT_NOCOLOR;
#else
constexpr bool can_split = false;
ncclResult_t split_comm(ncclComm_t, int, int, ncclComm_t*) { return ncclInvalidUsage; }
constexpr int no_color = -1;
#endif

}  // namespace

NcclFormation usual_formation() { return can_split ? NcclFormation::split : NcclFormation::unique_id; }

void NcclHandle::check(ncclResult_t result, const char* call) const {
  result = context_->settled(result);
  if (result == ncclSuccess) return;
  const char* details = raw_ == nullptr ? "" : ncclGetLastError(raw_);
  context_->fail(message(call, " failed: ", ncclGetErrorString(result), " (", details,
                         "); the other ranks are told; NCCL_DEBUG=WARN shows what NCCL knows of the cause"));
}

NcclHandle NcclHandle::form(Communicator& host, const std::shared_ptr<DeviceContext>& context) {
  NcclHandle unformed;
  unformed.context_ = context;
  if (host.size() == 1) return unformed;
  ncclUniqueId id{};
  context->make_current();
  if (host.rank() == 0) unformed.check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  host.broadcast(Elements(id.internal, sizeof(id.internal)), 0);
  ncclComm_t raw = nullptr;
  const ncclResult_t result = run_watched(ncclCommInitRank, &raw, host.size(), id, host.rank());
  NcclHandle formed(context, raw);
  formed.check(result, "ncclCommInitRank");
  formed.require_ranks_of(host);
  return formed;
}

NcclHandle NcclHandle::split(const Communicator* child_host, std::optional<int> color, int key) const {
  NcclHandle child;
  child.context_ = context_;
  if (raw_ == nullptr) return child;
  // NCCL splits a communicator only while none of its operations is in progress.
  const PooledEvent so_far = context_->communication_so_far();
  context_->wait(so_far.get());
  ncclComm_t raw = nullptr;
  run("ncclCommSplit", split_comm, get(), color.value_or(no_color), key, &raw);
  // Without blocking, NCCL 2.28 returns ncclSuccess while it still makes the child, which is null until then.
  // Only the parent tells when that is over.
  static_cast<void>(context_->settled(ncclInProgress));
  if (child_host == nullptr) return child;
  child = NcclHandle(context_, raw);
  child.require_ranks_of(*child_host);
  return child;
}

NcclHandle::NcclHandle(std::shared_ptr<DeviceContext> context, ncclComm_t raw)
    : context_(std::move(context)), raw_(raw) {
  if (raw_ != nullptr) number_ = context_->watch(raw_);
}

void NcclHandle::require_ranks_of(const Communicator& host) const {
  // Without blocking, the call that made it may still go on.
  static_cast<void>(context_->settled(ncclInProgress));
  int size = 0, rank = -1;
  check(ncclCommCount(raw_, &size), "ncclCommCount");
  check(ncclCommUserRank(raw_, &rank), "ncclCommUserRank");
  require<CommunicationError>(size == host.size() && rank == host.rank(), "NCCL made this rank ", rank,
                              " of ", size, " where the host has rank ", host.rank(), " of ", host.size(),
                              "; this is a fault of this library or of NCCL");
}

ncclComm_t NcclHandle::get() const {
  require<CommunicationError>(
      context_->is_watched(number_),
      "the communicators of this GPU were given up after an error, so nothing more can be sent");
  return raw_;
}

NcclHandle::~NcclHandle() {
  if (raw_ != nullptr) context_->end(number_);
}

}  // namespace gridlops::cuda
