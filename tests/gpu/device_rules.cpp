// SPDX-License-Identifier: BSD-3-Clause
// Checks on the emulation what CUDA and NCCL ask of their callers: the right device in every thread, errors
// that are noticed, devices without memory pools, and waiting time that counts communication only.
#include <complex>
#include <exception>
#include <thread>

#include "comm/communicator_contract.hpp"
#include "comm/failure/watchdog.hpp"
#include "emulation/control.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/gpu.hpp"
#include "local/arrays/array_kernels.hpp"
#include "support/programs/mpi_main.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using gridlops::testing::Operand;
using gridlops::testing::Subject;
using gridlops::testing::Variable;
using gridlops::testing::world;

namespace {

/// Calls action in a thread of its own, in which device 0 is current, as in every new thread.
template <class Action>
void elsewhere(Action&& action) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      action();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error != nullptr) std::rethrow_exception(error);
}

std::vector<double> counted(Index count) { return testing::values<double>(world().rank(), count); }

/// Two columns in the memory of a backend.
struct Columns {
  explicit Columns(const std::shared_ptr<Backend>& backend) : memory(backend, 12), sums(backend, 2) {
    const std::vector<double> values = counted(12);
    backend->upload(values.data(), memory.data(), 96);
    backend->upload(values.data(), sums.data(), 16);
  }
  MatrixView<double> view() { return {memory.data(), 6, 2}; }

  Buffer<double> memory, sums;
};

template <Scalar T>
void call_every_kernel(const std::shared_ptr<Backend>& shared) {
  Backend& backend = *shared;
  const auto& kernels = backend.kernels<T>();
  const Index bytes = 36 * static_cast<Index>(sizeof(T));
  // Each call in a thread that has not called CUDA before.
  T *a = nullptr, *b = nullptr, *c = nullptr;
  std::vector<Accumulator<T>> dots(6);
  std::vector<double> sums(6);
  elsewhere([&] { a = static_cast<T*>(backend.allocate(bytes)); });
  elsewhere([&] { b = static_cast<T*>(backend.allocate(bytes)); });
  elsewhere([&] { c = static_cast<T*>(backend.allocate(bytes)); });
  const MatrixView<T> A(a, 6, 6), B(b, 6, 6), C(c, 6, 6);
  elsewhere([&] { kernels.fill(T(1), A); });
  elsewhere([&] { kernels.fill(T(2), B); });
  elsewhere([&] { kernels.gemm(Op::none, Op::adjoint, T(1), A, B, T(0), C); });
  elsewhere([&] { kernels.gemm(Op::none, Op::none, T(1), A, B, T(1), C); });
  elsewhere([&] { kernels.copy(A, B); });
  elsewhere([&] { kernels.add(T(1), A, T(2), B); });
  elsewhere([&] { kernels.diagonal_multiply(T(1), a, true, B, T(0), C); });
  elsewhere([&] { kernels.column_dots(A, B, dots.data()); });
  elsewhere([&] { kernels.column_norms_squared(A, sums.data()); });
  elsewhere([&] { kernels.column_threshold(Threshold::soft, std::vector<double>(6).data(), C); });
  elsewhere([&] { kernels.column_power_sums(1.5, A, sums.data()); });
  const std::vector<T> ones(6, T(1));
  elsewhere([&] { kernels.column_axpy(ones.data(), A, C); });
  elsewhere([&] { kernels.column_xpby(A, ones.data(), C); });
  elsewhere([&] { kernels.column_scale(ones.data(), C); });
  elsewhere([&] {
    kernels.gemm_batched(2, Op::none, Op::none, T(1), {{a, 2, 2}, 4}, {{b, 2, 2}, 4}, T(0), {{c, 2, 2}, 4});
  });
  elsewhere([&] { kernels.clip(-1, 1, C); });
  elsewhere([&] {
    kernels.arrays().box_update({BoxKind::step, std::vector<double>(6).data(), A, C, A, B, C});
  });
  std::unique_ptr<LineTransform<T>> transform;
  elsewhere([&] {
    transform = kernels.arrays().line_transform(
        shared,
        {.inner = 2, .samples = 3, .frequencies = is_complex<T> ? 3 : 1, .one_sided = !is_complex<T>});
  });
  const MatrixView<T> spectra(b, is_complex<T> ? 6 : 4, 6);
  elsewhere([&] { transform->forward(T(1), A, T(0), spectra); });
  elsewhere([&] { transform->adjoint(T(1), spectra, T(0), C); });
  elsewhere([&] { transform.reset(); });
  elsewhere([&] { backend.synchronize(); });
  std::vector<T> found(36);
  elsewhere([&] { backend.download(a, found.data(), bytes); });
  CHECK(found == std::vector<T>(36, T(1)));
  for (T* memory : {a, b, c}) elsewhere([&] { backend.release(memory); });
}

}  // namespace

TEST_CASE("A backend works from any thread on the device that it was made for") {
  for (const int device : {1, 0}) {
    std::shared_ptr<Backend> backend;
    elsewhere([&] { backend = make_gpu_backend(device); });
    call_every_kernel<float>(backend);
    call_every_kernel<double>(backend);
    call_every_kernel<std::complex<float>>(backend);
    call_every_kernel<std::complex<double>>(backend);
    elsewhere([&] { backend.reset(); });
  }
}

TEST_CASE("A communicator works from any thread on the device of its backend") {
  for (const char* transport : {"nccl", "mpi"}) {
    INFO(transport);
    Subject subject;
    elsewhere([&] { subject.memory = make_gpu_backend(1); });
    elsewhere([&] { subject.comm = make_gpu_communicator(world(), subject.memory, transport); });
    const int size = world().size(), rank = world().rank();
    std::unique_ptr<Communicator> part;
    elsewhere([&] { part = subject.comm->split(rank % 2, rank); });
    Operand<double> one(subject, counted(5)), sums(subject, counted(5)), ordered(subject, counted(5)),
        all(subject, testing::untouched<double>(5 * size)), next(subject, testing::untouched<double>(5));
    elsewhere([&] { subject.comm->all_gather(one, all); });
    elsewhere([&] { subject.comm->all_reduce(sums, ReduceOp::sum); });
    elsewhere([&] { subject.comm->all_reduce(ordered, ReduceOp::sum, ReductionOrder::by_rank); });
    elsewhere([&] { part->all_reduce(sums, ReduceOp::max); });
    // Begun, asked for and waited for in different threads.
    Request receipt, message;
    elsewhere([&] { receipt = subject.comm->start_receive(next, (rank + size - 1) % size); });
    elsewhere([&] { message = subject.comm->start_send(one, (rank + 1) % size); });
    elsewhere([&] { message.wait(); });
    bool is_here = false;
    while (!is_here) elsewhere([&] { is_here = receipt.test(); });
    Request broadcast;
    elsewhere([&] {
      CommunicationGroup group(*subject.comm);
      broadcast = subject.comm->start_broadcast(one, size - 1);
      group.close();
    });
    elsewhere([&] { broadcast.wait(); });
    CHECK(one.values() == testing::values<double>(size - 1, 5));
    CHECK(next.values() == testing::values<double>((rank + size - 1) % size, 5));
    elsewhere([&] { part.reset(); });
    elsewhere([&] { subject.comm.reset(); });
  }
}

TEST_CASE("The host has sums when it needs them, however late their kernels run") {
  const auto backend = make_gpu_backend(0);
  const Buffer<double> x(backend, 6000);
  backend->kernels<double>().fill(2, x.matrix(3000, 2));
  for (const double seconds : {0.0001, 0.02}) {
    // Two launches; the slow one comes first.
    std::vector<double> sums(10);
    std::vector<ColumnTerm<double>> terms;
    for (std::size_t k = 0; k < 5; ++k)
      terms.push_back({SumKind::norms_squared, x.matrix(3000, 2), {}, 2, sums.data() + 2 * k});
    emulation::slow_kernel("column_sums", seconds);
    backend->kernels<double>().column_sums(terms);
    CHECK(sums == std::vector<double>(10, 12000));
  }
}

TEST_CASE("A lack of memory that was handled is not taken for the failure of what comes next") {
  const auto backend = make_gpu_backend(0);
  const auto& kernels = backend->kernels<double>();
  Columns columns(backend);
  emulation::fail_call("cudaMallocAsync", 1);
  CHECK_THROWS_AS(backend->allocate(100), OutOfMemory);
  CHECK_NOTHROW(kernels.fill(1, columns.view()));
  // Sums of long columns have scratch memory of two kinds. Where the second cannot grow, what it was is not
  // taken for what it is.
  const Buffer<double> tall(backend, 6000);
  kernels.fill(1, tall.matrix(2000, 3));
  const auto sum = [&](Index cols) {
    std::vector<double> found(static_cast<std::size_t>(cols));
    kernels.column_norms_squared({tall.data(), 2000, cols}, found.data());
    return found;
  };
  emulation::fail_call("cudaMallocAsync", 1);
  CHECK_THROWS_AS(sum(1), OutOfMemory);
  CHECK(sum(1) == std::vector<double>{2000});
  emulation::fail_call("cudaMallocAsync", 2);
  CHECK_THROWS_AS(sum(3), OutOfMemory);
  CHECK(sum(1) == std::vector<double>{2000});
  CHECK(sum(3) == std::vector<double>(3, 2000));
  CHECK_NOTHROW(kernels.fill(1, columns.view()));
  const std::vector<double> many(1 << 17);
  Buffer<double> there(backend, static_cast<Index>(many.size()));
  emulation::fail_call("cudaMallocHost", 1);
  CHECK_THROWS_AS(backend->upload(many.data(), there.data(), Index{1} << 20), OutOfMemory);
  CHECK_NOTHROW(kernels.fill(1, columns.view()));
}

TEST_CASE("A device has as much memory as the environment says, and so has the host to pin") {
  for (const char* pools : {"1", "0"}) {
    const Variable with_pools("GRIDLOPS_EMULATION_POOLS", pools);
    const Variable of_devices("GRIDLOPS_EMULATION_DEVICE_BYTES", "1000"),
        of_host("GRIDLOPS_EMULATION_PINNED_BYTES", "4096");
    const auto backend = make_gpu_backend(0), other = make_gpu_backend(1);
    void* const first = backend->allocate(600);
    CHECK_THROWS_AS(backend->allocate(401), OutOfMemory);
    void* const second = other->allocate(1000);
    backend->release(first);
    void* const all = backend->allocate(1000);
    const std::vector<char> values(5000);
    CHECK_THROWS_AS(backend->upload(values.data(), all, 5000), OutOfMemory);
    CHECK_NOTHROW(backend->upload(values.data(), all, 1000));
    backend->release(all);
    other->release(second);
  }
}

TEST_CASE("An error names the call, and may be this rank's alone") {
  const auto backend = make_gpu_backend(0);
  Columns columns(backend);
  for (const char* call : {"cublasDgemm_64", "fill", "cudaEventRecord"}) {
    CAPTURE(call);
    emulation::fail_call(call, 1);
    try {
      const auto& kernels = backend->kernels<double>();
      const MatrixView<double> square(columns.memory.data(), 2, 2);
      kernels.fill(1, square);
      kernels.gemm(Op::none, Op::none, 1, square, square, 0, {columns.memory.data() + 4, 2, 2});
      backend->synchronize();
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(call) != std::string::npos);
      CHECK(error.known_to() == KnownTo::one_rank);
      CHECK(error.status() == ExitStatus::internal);
    }
    CHECK_NOTHROW(backend->kernels<double>().fill(1, columns.view()));
  }
}

TEST_CASE("The time of a rank's own work is not taken for waiting for others") {
  const double timeout = Watchdog::current()->set_timeout_seconds(2);
  const std::shared_ptr<Backend> backend = make_gpu_backend(0);
  const Subject subject{make_gpu_communicator(world(), backend, "nccl"), backend};
  const auto& kernels = backend->kernels<double>();
  Columns columns(backend);
  Operand<double> sums(subject, counted(5));
  // Before communication, and after it.
  emulation::slow_kernel("fill", 4);
  kernels.fill(1, columns.view());
  subject.comm->all_reduce(sums, ReduceOp::sum);
  CHECK_NOTHROW(backend->synchronize());
  subject.comm->all_reduce(sums, ReduceOp::sum);
  emulation::slow_kernel("fill", 4);
  kernels.fill(1, columns.view());
  CHECK_NOTHROW(backend->synchronize());
  Watchdog::current()->set_timeout_seconds(timeout);
}

TEST_CASE(
    "Where a device has no memory pools, what is released is used again, and given back when memory is "
    "short") {
  const Variable pools("GRIDLOPS_EMULATION_POOLS", "0");
  const auto backend = make_gpu_backend(0);
  const auto before = emulation::ledger();
  void* first = backend->allocate(5000);
  backend->release(first);
  void* second = backend->allocate(4000);
  CHECK(second == first);
  backend->release(second);
  CHECK(emulation::ledger().of("cudaMalloc") == before.of("cudaMalloc") + 1);
  emulation::fail_call("cudaMalloc", 1);
  void* larger = backend->allocate(9000);
  CHECK(larger != nullptr);
  CHECK(emulation::ledger().of("cudaFree") == before.of("cudaFree") + 1);
  backend->release(larger);
  // Half of a block, and less, does not keep the rest of it from others.
  void* small = backend->allocate(40);
  CHECK(small != larger);
  backend->release(small);
}
