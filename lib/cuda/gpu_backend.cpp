// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/gpu_backend.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/message.hpp"
#include "cuda/device_context.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/gpu.hpp"

namespace gridlops {
namespace cuda {

namespace {

constexpr Index piece_bytes = Index{4} << 20;  // long copies between host and device go in pieces

template <class Action>
void for_each_piece(Index bytes, Action&& action) {
  for (Index begin = 0; begin < bytes; begin += piece_bytes)
    action(Range{begin, std::min(piece_bytes, bytes - begin)});
}

int number_of_existing(int device) {
  const GpuInfo info = gpu_info();
  require<UsageError>(info.devices > 0, "no GPU can be used: ", info.problem, "; run on the CPU");
  require<UsageError>(device >= 0 && device < info.devices, "there is no GPU number ", device,
                      "; this machine has ", info.devices);
  return device;
}

}  // namespace

CudaBackend::CudaBackend(int device)
    : name_(message("GPU ", number_of_existing(device))),
      context_(DeviceContext::of(device)),
      environment_(*context_) {
  context_->make_current();
  check(cublasCreate(&environment_.blas), "cublasCreate");
  check(cublasSetStream(environment_.blas, context_->compute()), "cublasSetStream");
}

CudaBackend::~CudaBackend() {
  cudaSetDevice(context_->device());
  if (!context_->has_failed()) cudaStreamSynchronize(context_->compute());
}

void* CudaBackend::do_allocate(Index bytes) {
  return context_->memory().allocate(bytes, context_->compute());
}

void CudaBackend::do_release(void* memory) noexcept {
  context_->memory().release(memory, context_->compute());
}

void CudaBackend::upload(const void* host, void* here, Index bytes) {
  context_->make_current();
  for_each_piece(bytes, [&](Range piece) {
    PinnedBlock block = context_->pinned().take(piece.size);
    const auto size = static_cast<std::size_t>(piece.size);
    std::memcpy(block.data(), static_cast<const char*>(host) + piece.begin, size);
    check(cudaMemcpyAsync(static_cast<char*>(here) + piece.begin, block.data(), size, cudaMemcpyHostToDevice,
                          context_->compute()),
          "cudaMemcpyAsync to the GPU", piece.size);
    block.used_until(context_->events().record(context_->compute()));
  });
}

// While the host copies one piece out, the next is on its way.
void CudaBackend::download(const void* here, void* host, Index bytes) {
  context_->make_current();
  struct Travelling {
    Range piece;
    PinnedBlock block;
    PooledEvent arrival;
  };
  std::deque<Travelling> travelling;
  const auto receive_first = [&] {
    const Travelling& first = travelling.front();
    context_->wait(first.arrival.get());
    std::memcpy(static_cast<char*>(host) + first.piece.begin, first.block.data(),
                static_cast<std::size_t>(first.piece.size));
    travelling.pop_front();
  };
  for_each_piece(bytes, [&](Range piece) {
    if (travelling.size() == 2) receive_first();
    PinnedBlock block = context_->pinned().take(piece.size);
    check(cudaMemcpyAsync(block.data(), static_cast<const char*>(here) + piece.begin,
                          static_cast<std::size_t>(piece.size), cudaMemcpyDeviceToHost, context_->compute()),
          "cudaMemcpyAsync from the GPU", piece.size);
    travelling.push_back({piece, std::move(block), context_->events().record(context_->compute())});
  });
  while (!travelling.empty()) receive_first();
}

}  // namespace cuda

std::shared_ptr<Backend> make_gpu_backend(int device) { return std::make_shared<cuda::CudaBackend>(device); }

}  // namespace gridlops
