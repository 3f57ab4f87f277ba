// SPDX-License-Identifier: BSD-3-Clause
// A device whose kernels compute correct results and take simulated time. It takes the place of the GPU
// library in other builds, so --device gpu selects it. Reasons: docs/decisions/0027-simulation.md.
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <utility>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops::simulation {

namespace {

/// A positive number from a variable of the environment.
double rate(const char* variable) {
  const char* const text = std::getenv(variable);
  const double value = text == nullptr ? 0 : std::strtod(text, nullptr);
  if (!(value > 0))
    throw UsageError(std::string(variable) + " is '" + (text == nullptr ? "" : text) +
                     "'; the modelled device needs a number above 0");
  return value;
}

/// The queue of this rank's device: the simulated time at which all its work is done. A kernel takes the time
/// of a launch, plus the time of its flops or of its bytes, whichever is longer.
class Queue {
 public:
  void add(double flops, double bytes) {
    end_ += launch_seconds_ + std::max(flops / flops_per_second_, bytes / bytes_per_second_);
  }
  /// Later work starts no earlier than the host's present time.
  void follow_host() { follow(simgrid_get_clock()); }
  void follow(double moment) { end_ = std::max(end_, moment); }
  double end() const { return end_; }
  /// The host waits until the queue is empty.
  void drain() const {
    const double left = end_ - simgrid_get_clock();
    if (left > 0) sg_actor_sleep_for(left);
  }

 private:
  double flops_per_second_ = rate("MODELLED_FLOPS");  // real operations
  double bytes_per_second_ = rate("MODELLED_BYTES");
  double launch_seconds_ = rate("MODELLED_LAUNCH");
  double end_ = 0;
};

template <Scalar T>
double bytes_of(Index elements) {
  return static_cast<double>(elements) * sizeof(T);
}

/// The host's transform, as one kernel: 5 n log₂ n operations for a line of n complex numbers, half as many
/// for one of real numbers, and every line is read and written once.
template <Scalar T>
class ModelledTransform final : public LineTransform<T> {
 public:
  ModelledTransform(Queue& queue, std::unique_ptr<LineTransform<T>> host, const FourierLines& lines)
      : queue_(queue), host_(std::move(host)) {
    const auto n = static_cast<double>(lines.samples), count = static_cast<double>(lines.outer * lines.inner);
    flops_ = (is_complex<T> ? 5 : 2.5) * count * n * std::log2(n);
  }
  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    add(X, beta, Y);
    host_->forward(alpha, X, beta, Y);
  }
  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    add(Y, beta, X);
    host_->adjoint(alpha, Y, beta, X);
  }

 private:
  void add(MatrixView<const T> in, T beta, MatrixView<const T> out) {
    queue_.add(flops_ * static_cast<double>(in.cols),
               bytes_of<T>(in.size() + (beta == T(0) ? 1 : 2) * out.size()));
  }

  Queue& queue_;
  std::unique_ptr<LineTransform<T>> host_;
  double flops_;  // of a column
};

/// Of the host's kernels of arrays, copies of boxes and Fourier transforms take simulated time. Bands, runs,
/// groups of rows and migration take none.
template <Scalar T>
class ModelledArrayKernels final : public ArrayKernels<T> {
 public:
  using R = Real<T>;

  ModelledArrayKernels(Queue& queue, const ArrayKernels<T>& host) : queue_(queue), host_(host) {}

  void add_box(T alpha, const T* x, T beta, T* y, const BoxLoops& box) const override {
    queue_.add(0, bytes_of<T>((beta == T(0) ? 2 : 3) * box.size()));
    host_.add_box(alpha, x, beta, y, box);
  }
  std::unique_ptr<LineTransform<T>> line_transform(const std::shared_ptr<Backend>& backend,
                                                   const FourierLines& lines) const override {
    return std::make_unique<ModelledTransform<T>>(queue_, host_.line_transform(backend, lines), lines);
  }

  void add_band(T alpha, const BandWeights<R>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override {
    host_.add_band(alpha, A, X, beta, Y, extent);
  }
  void add_bands(T alpha, const std::vector<BandTerm<R>>& terms, MatrixView<const T> X, T beta,
                 MatrixView<T> Y) const override {
    host_.add_bands(alpha, terms, X, beta, Y);
  }
  void add_runs(T alpha, const RunWeights<R>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override {
    host_.add_runs(alpha, A, X, beta, Y, extent);
  }
  void group_norms(const RowGroups& groups, MatrixView<const T> X, MatrixView<T> N) const override {
    host_.group_norms(groups, X, N);
  }
  void shrink_groups(const double* t, const RowGroups& groups, MatrixView<const T> N,
                     MatrixView<T> X) const override {
    host_.shrink_groups(t, groups, N, X);
  }
  void box_update(const BoxUpdate<T>& update) const override { host_.box_update(update); }
  Index migration_scratch_bytes(const MigrationTables<R>& tables, Index columns) const override {
    return host_.migration_scratch_bytes(tables, columns);
  }
  void demigrate(const MigrationTables<R>& tables, bool adds, MatrixView<const T> image, MatrixView<T> data,
                 std::byte* scratch) const override {
    host_.demigrate(tables, adds, image, data, scratch);
  }
  void migrate(const MigrationTables<R>& tables, MatrixView<const T> data, MatrixView<T> image,
               std::byte* scratch) const override {
    host_.migrate(tables, data, image, scratch);
  }

 private:
  Queue& queue_;
  const ArrayKernels<T>& host_;
};

/// The host's kernels, which also add their time to the queue. They count the bytes of the operands that they
/// read and write.
template <Scalar T>
class ModelledKernels final : public Kernels<T> {
 public:
  ModelledKernels(Queue& queue, const Kernels<T>& host)
      : queue_(queue), host_(host), arrays_(queue, host.arrays()) {}

  void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
            MatrixView<T> C) const override {
    gemm_batched(1, op_a, op_b, alpha, {A}, {B}, beta, {C});
  }
  void gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A, MatrixBatch<const T> B,
                    T beta, MatrixBatch<T> C) const override {
    const Index inner = op_a == Op::none ? A.first.cols : A.first.rows, elements = count * C.first.size();
    queue_.add((is_complex<T> ? 8.0 : 2.0) * static_cast<double>(elements) * static_cast<double>(inner),
               bytes_of<T>(count * (A.first.size() + B.first.size()) + (beta == T(0) ? 1 : 2) * elements));
    host_.gemm_batched(count, op_a, op_b, alpha, A, B, beta, C);
  }
  Index narrow_strip(Index rows) const override { return host_.narrow_strip(rows); }
  void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                   MatrixView<T> Y) const override {
    double flops = 0, bytes = bytes_of<T>(X.size() + (beta == T(0) ? 1 : 2) * Y.size());
    for (const NarrowMatrix<T>& matrix : A) {
      flops += product_flops<T>(matrix.rows, matrix.cols, X.cols);
      bytes += static_cast<double>(matrix.bytes());
    }
    queue_.add(flops, bytes);
    host_.narrow_gemm(op, alpha, A, X, beta, Y);
  }
  void copy(MatrixView<const T> X, MatrixView<T> Y) const override {
    touch(2, X);
    host_.copy(X, Y);
  }
  void fill(T value, MatrixView<T> X) const override {
    touch(1, X);
    host_.fill(value, X);
  }
  void add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const override {
    touch(beta == T(0) ? 2 : 3, X);
    host_.add(alpha, X, beta, Y);
  }
  void diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                         MatrixView<T> Y) const override {
    touch(beta == T(0) ? 2 : 3, X);
    host_.diagonal_multiply(alpha, d, conjugate_d, X, beta, Y);
  }
  void column_sums(std::span<const ColumnTerm<T>> terms) const override {
    for (const ColumnTerm<T>& term : terms) touch(term.kind == SumKind::dots ? 2 : 1, term.X);
    queue_.drain();
    host_.column_sums(terms);
  }
  void column_updates(std::span<const BlockUpdate<T>> updates) const override {
    for (const BlockUpdate<T>& update : updates) touch(update.kind == UpdateKind::scale ? 2 : 3, update.Y);
    host_.column_updates(updates);
  }
  void column_threshold(Threshold kind, const double* t, MatrixView<T> X) const override {
    touch(2, X);
    host_.column_threshold(kind, t, X);
  }
  void clip(double lower, double upper, MatrixView<T> X) const override {
    touch(2, X);
    host_.clip(lower, upper, X);
  }
  const ArrayKernels<T>& arrays() const override { return arrays_; }

 private:
  void touch(Index times, MatrixView<const T> X) const { queue_.add(0, bytes_of<T>(times * X.size())); }

  Queue& queue_;
  const Kernels<T>& host_;
  ModelledArrayKernels<T> arrays_;
};

class ModelledBackend final : public Backend {
 public:
  Queue& queue() { return queue_; }
  std::string name() const override { return "modelled device"; }
  MemorySpace memory_space() const override { return MemorySpace::device; }
  void upload(const void* from, void* here, Index bytes) override {
    queue_.add(0, static_cast<double>(bytes));
    host_->upload(from, here, bytes);
  }
  void download(const void* here, void* to, Index bytes) override {
    queue_.add(0, static_cast<double>(bytes));
    queue_.drain();
    host_->download(here, to, bytes);
  }
  void synchronize() override { queue_.drain(); }

 private:
  void* do_allocate(Index bytes) override { return host_->allocate(bytes); }
  void do_release(void* memory) noexcept override { host_->release(memory); }
  const Kernels<float>& kernels_f32() const override { return f32_; }
  const Kernels<double>& kernels_f64() const override { return f64_; }
  const Kernels<std::complex<float>>& kernels_c64() const override { return c64_; }
  const Kernels<std::complex<double>>& kernels_c128() const override { return c128_; }

  std::shared_ptr<Backend> host_ = make_host_backend();
  Queue queue_;
  ModelledKernels<float> f32_{queue_, host_->kernels<float>()};
  ModelledKernels<double> f64_{queue_, host_->kernels<double>()};
  ModelledKernels<std::complex<float>> c64_{queue_, host_->kernels<std::complex<float>>()};
  ModelledKernels<std::complex<double>> c128_{queue_, host_->kernels<std::complex<double>>()};
};

/// A message. The device continues only after it has arrived.
class Arrival final : public PendingOperation {
 public:
  Arrival(Request request, std::shared_ptr<ModelledBackend> device)
      : request_(std::move(request)), device_(std::move(device)) {}
  void wait() override {
    request_.wait();
    device_->queue().follow_host();
  }
  bool test() override {
    const bool is_done = request_.test();
    if (is_done) device_->queue().follow_host();
    return is_done;
  }

 private:
  Request request_;
  std::shared_ptr<ModelledBackend> device_;
};

/// A collective operation that is over on the host but perhaps ahead of the device's queue. test() returns
/// true once the queue has reached its end, or when the host asks again without new work for the device.
class Finished final : public PendingOperation {
 public:
  explicit Finished(std::shared_ptr<ModelledBackend> device) : device_(std::move(device)) {}
  void wait() override { device_->queue().follow(end_); }
  bool test() override {
    const double reached = device_->queue().end();
    if (reached < end_ && std::exchange(asked_at_, reached) != reached) return false;
    wait();
    return true;
  }

 private:
  std::shared_ptr<ModelledBackend> device_;
  double end_ = simgrid_get_clock();
  double asked_at_ = -1;
};

/// All operations follow the device's earlier work. Collective operations run one after another in program
/// order, as on the one communication queue of a GPU. So they can be MPI's blocking operations: the device
/// multiplies while the host is in MPI. (SMPI's non-blocking collectives are a loop of messages at the root.)
class ModelledCommunicator final : public Communicator {
 public:
  ModelledCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<ModelledBackend> device,
                       std::shared_ptr<Traffic> traffic)
      : Communicator(host->rank(), host->size(), std::move(traffic)),
        host_(std::move(host)),
        device_(std::move(device)) {}

  std::string transport() const override { return host_->transport(); }
  [[noreturn]] void abort(ExitStatus status) override {
    host_->abort(status);
    std::terminate();  // not reached
  }

 private:
  template <class Operation>
  Pending collective(Completion completion, Operation&& operation) {
    device_->queue().drain();
    operation();
    if (completion == Completion::pending) return std::make_unique<Finished>(device_);
    device_->queue().follow_host();
    return nullptr;
  }
  Pending message(Completion completion, Request request) {
    auto arrival = std::make_unique<Arrival>(std::move(request), device_);
    if (completion == Completion::pending) return arrival;
    arrival->wait();
    return nullptr;
  }

  std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) override {
    auto part = host_->split(color, key);
    if (part == nullptr) return nullptr;
    return std::make_unique<ModelledCommunicator>(std::move(part), device_, traffic_account());
  }
  Pending do_barrier(Completion completion) override {
    return collective(completion, [&] { host_->barrier(); });
  }
  Pending do_broadcast(Elements data, int root, Completion completion) override {
    return collective(completion, [&] { host_->broadcast(data, root); });
  }
  Pending do_reduce(ConstElements in, Elements out, ReduceOp op, int root, ReductionOrder order,
                    Completion completion) override {
    return collective(completion, [&] { host_->reduce(in, out, op, root, order); });
  }
  Pending do_all_reduce(Elements data, ReduceOp op, ReductionOrder order, Completion completion) override {
    return collective(completion, [&] { host_->all_reduce(data, op, order); });
  }
  Pending do_gather(ConstElements mine, Elements all, std::span<const Index> counts, int root,
                    Completion completion) override {
    return collective(completion, [&] { host_->gather_v(mine, all, counts, root); });
  }
  Pending do_scatter(ConstElements all, std::span<const Index> counts, Elements mine, int root,
                     Completion completion) override {
    return collective(completion, [&] { host_->scatter_v(all, counts, mine, root); });
  }
  Pending do_all_gather(ConstElements mine, Elements all, std::span<const Index> counts,
                        Completion completion) override {
    return collective(completion, [&] { host_->all_gather_v(mine, all, counts); });
  }
  Pending do_reduce_scatter(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp op,
                            ReductionOrder order, Completion completion) override {
    return collective(completion, [&] { host_->reduce_scatter_v(all, counts, mine, op, order); });
  }
  Pending do_all_to_all(ConstElements send, std::span<const Index> send_counts, Elements receive,
                        std::span<const Index> receive_counts, Completion completion) override {
    return collective(completion, [&] { host_->all_to_all_v(send, send_counts, receive, receive_counts); });
  }
  Pending do_send(ConstElements data, int destination, int tag, Completion completion) override {
    device_->queue().drain();
    return message(completion, host_->start_send(data, destination, tag));
  }
  Pending do_receive(Elements data, int source, int tag, Completion completion) override {
    device_->queue().drain();
    return message(completion, host_->start_receive(data, source, tag));
  }

  std::unique_ptr<Communicator> host_;
  std::shared_ptr<ModelledBackend> device_;
};

}  // namespace

}  // namespace gridlops::simulation

namespace gridlops {

std::shared_ptr<Backend> make_gpu_backend(int) { return std::make_shared<simulation::ModelledBackend>(); }

GpuInfo gpu_info() {
  GpuInfo info;
  info.is_built = true;
  info.devices = 1;
  info.transports = {"mpi"};
  info.versions = "modelled in simulated time";
  return info;
}

std::unique_ptr<Communicator> make_gpu_communicator(Communicator& host,
                                                    const std::shared_ptr<Backend>& backend,
                                                    const std::string& transport) {
  auto device = std::dynamic_pointer_cast<simulation::ModelledBackend>(backend);
  if (device == nullptr || transport != "mpi")
    throw UsageError("in a simulation the modelled device has the transport mpi, not '" + transport +
                     "'; use --transport mpi");
  return std::make_unique<simulation::ModelledCommunicator>(make_host_communicator(host, transport),
                                                            std::move(device), std::make_shared<Traffic>());
}

}  // namespace gridlops

// The linker replaces the system's functions by these.

std::chrono::steady_clock::time_point simulated_now() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point simulated_now() {
  using Clock = std::chrono::steady_clock;
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(simgrid_get_clock())));
}

namespace {

int sleep_in_simulation(const timespec* time) {
  sg_actor_sleep_for(static_cast<double>(time->tv_sec) + 1e-9 * static_cast<double>(time->tv_nsec));
  return 0;
}

}  // namespace

extern "C" {
int __wrap_nanosleep(const timespec* time, timespec*);
int __wrap_nanosleep(const timespec* time, timespec*) { return sleep_in_simulation(time); }
int __wrap_clock_nanosleep(clockid_t, int, const timespec* time, timespec*);
int __wrap_clock_nanosleep(clockid_t, int, const timespec* time, timespec*) {
  return sleep_in_simulation(time);
}

// A rank that waits tests its requests again and again. SMPI would let 100 µs pass in each test, or more.
int __wrap_MPI_Test(MPI_Request*, int*, MPI_Status*);
int __wrap_MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status) {
  *is_done = 1;
  return MPI_Wait(request, status);
}

// SMPI's own function sends a message from each rank to each other rank.
int __wrap_MPI_Iallreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int __wrap_MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Allreduce(in, out, count, type, op, comm);
}
}
