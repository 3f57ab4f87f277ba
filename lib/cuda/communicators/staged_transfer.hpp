// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cuda/device_context.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops::cuda {

/// An operation of a host communicator on device operands. The communication stream, which must follow the
/// compute stream, copies them to page-locked host memory; from there they travel; then they are copied back.
/// Data that one request has brought are copied to the device while others still travel.
class StagedTransfer final : public PendingOperation {
 public:
  explicit StagedTransfer(std::shared_ptr<DeviceContext> context) : context_(std::move(context)) {}

  /// Host memory for the old or new contents of a device array. It lives as long as the transfer.
  Elements stage(const ConstElements& device);
  /// Begins host ← device.
  void download(const ConstElements& device, const Elements& host);
  /// Waits for all downloads.
  void await_downloads();

  struct Upload {
    ConstElements host;
    Elements device;
  };
  /// Adds a request, and the uploads that begin when it is complete.
  void add(Request request, std::vector<Upload> uploads);

  void wait() override;
  bool test() override;

  /// Makes one operation per chunk of arrays that correspond element by element: begin(in, out) starts it on
  /// host memory. `in` or `out` may be empty. If they are the same array, so are their chunks.
  using Begin = std::function<Request(ConstElements in, Elements out)>;
  static std::unique_ptr<PendingOperation> in_chunks(const std::shared_ptr<DeviceContext>& context,
                                                     ConstElements in, Elements out, const Begin& begin);

 private:
  struct Chunk {
    Request request;
    std::vector<Upload> uploads;
  };
  void upload_first();
  void finish();

  std::shared_ptr<DeviceContext> context_;
  std::vector<PinnedBlock> blocks_;
  PooledEvent downloads_;
  std::vector<Chunk> chunks_;
  std::size_t chunks_done_ = 0;
  bool is_finished_ = false;
};

}  // namespace gridlops::cuda
