// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/communicators/staged_transfer.hpp"

#include <algorithm>
#include <utility>

#include "base/numbers.hpp"
#include "comm/rank_parts.hpp"
#include "cuda/device_context.hpp"

namespace gridlops::cuda {

Elements StagedTransfer::stage(const ConstElements& device) {
  if (device.count == 0) return {nullptr, 0, device.type, device.reals_per_element};
  blocks_.push_back(context_->pinned().take(device.bytes()));
  return {blocks_.back().data(), device.count, device.type, device.reals_per_element};
}

void StagedTransfer::download(const ConstElements& device, const Elements& host) {
  if (device.count == 0) return;
  check(cudaMemcpyAsync(host.data, device.data, static_cast<std::size_t>(device.bytes()),
                        cudaMemcpyDeviceToHost, context_->communication()),
        "cudaMemcpyAsync from the GPU", device.bytes());
  downloads_ = context_->communication_so_far();
}

void StagedTransfer::await_downloads() {
  if (downloads_.get() != nullptr) context_->wait(downloads_.get());
}

void StagedTransfer::add(Request request, std::vector<Upload> uploads) {
  chunks_.push_back({std::move(request), std::move(uploads)});
}

void StagedTransfer::upload_first() {
  DeviceTimeline& timeline = context_->timeline();
  const auto region = timeline.begin(DeviceTimeline::Stream::communication, "upload");
  for (const Upload& upload : chunks_[chunks_done_].uploads) {
    if (upload.host.count == 0) continue;
    check(cudaMemcpyAsync(upload.device.data, upload.host.data, static_cast<std::size_t>(upload.host.bytes()),
                          cudaMemcpyHostToDevice, context_->communication()),
          "cudaMemcpyAsync to the GPU", upload.host.bytes());
  }
  timeline.end(region);
  ++chunks_done_;
}

void StagedTransfer::finish() {
  if (std::exchange(is_finished_, true)) return;
  context_->compute_follows(context_->communication_so_far().get());
  for (PinnedBlock& block : blocks_) block.used_until(context_->communication_so_far());
}

void StagedTransfer::wait() {
  context_->make_current();
  while (chunks_done_ < chunks_.size()) {
    chunks_[chunks_done_].request.wait();
    upload_first();
  }
  finish();
}

bool StagedTransfer::test() {
  context_->make_current();
  while (chunks_done_ < chunks_.size()) {
    if (!chunks_[chunks_done_].request.test()) return false;
    upload_first();
  }
  finish();
  return true;
}

std::unique_ptr<PendingOperation> StagedTransfer::in_chunks(const std::shared_ptr<DeviceContext>& context,
                                                            ConstElements in, Elements out,
                                                            const Begin& begin) {
  auto transfer = std::make_unique<StagedTransfer>(context);
  const Index count = std::max(in.count, out.count);
  const Index element = in.count > 0 ? in.element_size() : out.element_size();
  const Index chunk = std::max<Index>(1, context->staging_chunk_bytes / element);
  const Elements host_in = transfer->stage(in);
  const Elements host_out = in.data == out.data ? host_in : transfer->stage(out);
  const auto part = [count, chunk](const auto& array, Index first) {
    return array.count == 0 ? array : slice(array, first, std::min(chunk, count - first));
  };
  std::vector<PooledEvent> arrivals;
  for (Index first = 0; first < in.count; first += chunk) {
    transfer->download(part(in, first), part(host_in, first));
    arrivals.push_back(std::move(transfer->downloads_));
  }
  for (Index first = 0; first < count; first += chunk) {
    if (in.count > 0) context->wait(arrivals[at(first / chunk)].get());
    const Elements result = part(host_out, first);
    transfer->add(begin(part(host_in, first), result), {{result, part(out, first)}});
  }
  return transfer;
}

}  // namespace gridlops::cuda
