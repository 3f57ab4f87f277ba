// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cuda/device_context.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops::cuda {

/// An operation of a host communicator on operands of the device: they come to page-locked host memory in the
/// communicating stream, which must be behind the computing one, travel, and go back. What a request brings
/// is on its way to the device while others still travel.
class StagedTransfer final : public PendingOperation {
 public:
  explicit StagedTransfer(std::shared_ptr<DeviceContext> context) : context_(std::move(context)) {}

  /// Host memory that lives as long as the transfer, like a device array: to take its contents, or what is to
  /// become them.
  Elements stage(const ConstElements& device);
  /// host ← device; begun only.
  void download(const ConstElements& device, const Elements& host);
  /// Waits for what was begun.
  void await_downloads();

  struct Upload {
    ConstElements host;
    Elements device;
  };
  /// When the request is complete the uploads are begun.
  void add(Request request, std::vector<Upload> uploads);

  void wait() override;
  bool test() override;

  /// One operation per chunk of arrays that correspond element by element: begin(in, out) starts it on host
  /// memory. `in` or `out` may be empty; where they are the same place, so are the chunks.
  using Begin = std::function<Request(ConstElements in, Elements out)>;
  static std::unique_ptr<PendingOperation> in_chunks(const std::shared_ptr<DeviceContext>& context,
                                                     ConstElements in, Elements out, const Begin& begin);

 private:
  struct Part {
    Request request;
    std::vector<Upload> uploads;
  };
  void upload_first();
  void finish();

  std::shared_ptr<DeviceContext> context_;
  std::vector<PinnedBlock> blocks_;
  PooledEvent downloads_;
  std::vector<Part> parts_;
  std::size_t parts_done_ = 0;
  bool is_finished_ = false;
};

}  // namespace gridlops::cuda
