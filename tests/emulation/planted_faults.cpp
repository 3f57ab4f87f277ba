// SPDX-License-Identifier: BSD-3-Clause
// Makes one fault per run that the emulation must report: planted_faults NAME. It calls the vendor's
// functions as a careless library would. planted_faults.py has the report that each fault must lead to.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufftXt.h>
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::size_t count = 64, bytes = count * sizeof(double);

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Two streams, an event, and memory of each kind.
struct Setup {
  cudaStream_t one = nullptr, two = nullptr;
  cudaEvent_t event = nullptr;
  double *device = nullptr, *other = nullptr, *pinned = nullptr;

  Setup() {
    cudaStreamCreateWithPriority(&one, cudaStreamNonBlocking, 0);
    cudaStreamCreateWithPriority(&two, cudaStreamNonBlocking, -5);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMallocAsync(reinterpret_cast<void**>(&device), bytes, one);
    cudaMallocAsync(reinterpret_cast<void**>(&other), bytes, one);
    cudaMallocHost(reinterpret_cast<void**>(&pinned), bytes);
    std::memset(pinned, 0, bytes);
    cudaMemsetAsync(device, 0, bytes, one);
    cudaMemsetAsync(other, 0, bytes, one);
    cudaStreamSynchronize(one);
  }
  ~Setup() {
    cudaStreamSynchronize(one);
    cudaStreamSynchronize(two);
    cudaFreeAsync(device, one);
    cudaFreeAsync(other, one);
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
  }
  void order(cudaStream_t first, cudaStream_t then) const {
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(then, event, 0);
  }
};

/// Communicators of all ranks, and of the rows and columns of a 2 × 2 grid.
struct Communicators {
  ncclComm_t world = nullptr, row = nullptr, column = nullptr;

  Communicators() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ncclUniqueId id{};
    if (rank_of_world() == 0) ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclCommInitRank(&world, size, id, rank_of_world());
    ncclCommSplit(world, rank_of_world() / 2, rank_of_world(), &row, nullptr);
    ncclCommSplit(world, rank_of_world() % 2, rank_of_world(), &column, nullptr);
  }
  ~Communicators() {
    ncclCommDestroy(column);
    ncclCommDestroy(row);
    ncclCommDestroy(world);
  }
};

void broadcast(double* data, ncclComm_t comm, cudaStream_t stream) {
  ncclBroadcast(data, data, count, ncclFloat64, 0, comm, stream);
}

/// After its first use no host waits for another within a collective call.
void connect(const Setup& s, ncclComm_t comm) {
  broadcast(s.device, comm, s.one);
  cudaStreamSynchronize(s.one);
}

// A correct program must pass.
void nothing() {
  const Setup s;
  const Communicators c;
  broadcast(s.device, c.world, s.two);
  s.order(s.two, s.one);
  cudaMemcpyAsync(s.other, s.device, bytes, cudaMemcpyDeviceToDevice, s.one);
  s.order(s.one, s.two);
  broadcast(s.device, c.row, s.two);
  broadcast(s.device, c.column, s.two);
  cudaMemcpyAsync(s.pinned, s.device, bytes, cudaMemcpyDeviceToHost, s.two);
  cudaStreamSynchronize(s.two);
  if (s.pinned[count - 1] != 0) std::fprintf(stderr, "wrong result\n");
}

void missing_ready_event() {
  const Setup s;
  const Communicators c;
  broadcast(s.device, c.world, s.two);
  cudaMemcpyAsync(s.other, s.device, bytes, cudaMemcpyDeviceToDevice, s.one);
  cudaStreamSynchronize(s.two);
}

void missing_reuse_event() {
  const Setup s;
  const Communicators c;
  cudaMemcpyAsync(s.other, s.device, bytes, cudaMemcpyDeviceToDevice, s.one);
  broadcast(s.device, c.world, s.two);
  cudaStreamSynchronize(s.two);
}

void host_reads_too_early() {
  const Setup s;
  // Now and then the system lets the copy go first.
  for (int attempt = 0; attempt < 100; ++attempt) {
    cudaMemcpyAsync(s.pinned, s.device, bytes, cudaMemcpyDeviceToHost, s.one);
    if (std::isnan(s.pinned[0])) std::fprintf(stderr, "the host read NaN\n"), _exit(1);
    cudaStreamSynchronize(s.one);
  }
}

void host_writes_source() {
  const Setup s;
  for (int attempt = 0; attempt < 100; ++attempt) {  // as above
    cudaMemcpyAsync(s.device, s.pinned, bytes, cudaMemcpyHostToDevice, s.one);
    s.pinned[3] = attempt + 1;
    cudaStreamSynchronize(s.one);
  }
}

void pageable_copy() {
  const Setup s;
  std::vector<double> pageable(count);
  cudaMemcpyAsync(s.device, pageable.data(), bytes, cudaMemcpyHostToDevice, s.one);
  cudaStreamSynchronize(s.one);
}

void host_touches_device() {
  const Setup s;
  s.device[5] = 1;
}

void mpi_touches_device() {
  const Setup s;
  MPI_Bcast(s.device, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

// The emulation's MPI never adds on the device.
void mpi_adds_device() {
  const Setup s;
  MPI_Allreduce(MPI_IN_PLACE, s.device, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/// An MPI that takes device memory does not wait for streams.
void mpi_reads_too_early() {
  setenv("GRIDLOPS_EMULATION_MPI", "aware", 1);
  const Setup s;
  cudaMemcpyAsync(s.device, s.other, bytes, cudaMemcpyDeviceToDevice, s.one);
  MPI_Bcast(s.device, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  cudaStreamSynchronize(s.one);
}

void wrong_count() {
  const Setup s;
  const Communicators c;
  const std::size_t mine = rank_of_world() == 1 ? count - 1 : count;
  ncclAllReduce(s.device, s.device, mine, ncclFloat64, ncclSum, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void wrong_root() {
  const Setup s;
  const Communicators c;
  ncclReduce(s.device, s.other, count, ncclFloat64, ncclSum, rank_of_world() == 1 ? 1 : 0, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void wrong_type() {
  const Setup s;
  const Communicators c;
  const ncclDataType_t type = rank_of_world() == 1 ? ncclInt64 : ncclFloat64;
  ncclAllReduce(s.device, s.device, count, type, ncclSum, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void wrong_order() {
  const Setup s;
  const Communicators c;
  for (int k = 0; k < 2; ++k) {
    if ((rank_of_world() == 1) == (k == 0)) {
      broadcast(s.device, c.world, s.one);
    } else {
      ncclAllReduce(s.device, s.device, count, ncclFloat64, ncclSum, c.world, s.one);
    }
  }
  cudaStreamSynchronize(s.one);
}

void wrong_message_length() {
  const Setup s;
  const Communicators c;
  if (rank_of_world() == 0) ncclSend(s.device, count, ncclFloat64, 1, c.world, s.one);
  if (rank_of_world() == 1) ncclRecv(s.device, count - 2, ncclFloat64, 0, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void skipped_collective() {
  const Setup s;
  const Communicators c;
  for (int k = 0; k < 3; ++k)
    if (rank_of_world() != 1 || k != 1) broadcast(s.device, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void absent_at_first_use() {
  const Setup s;
  const Communicators c;
  if (rank_of_world() == 1) sleep(4);
  broadcast(s.device, c.world, s.one);
}

/// Rank 0 waits on its device for a collective operation that rank 1 never begins.
void wait_in_vain(const Setup& s, const Communicators& c) {
  connect(s, c.world);
  MPI_Barrier(MPI_COMM_WORLD);  // or rank 0 may give up before rank 1 is connected
  if (rank_of_world() == 1) sleep(4);
  if (rank_of_world() == 0) broadcast(s.device, c.world, s.one);
}

void aborts_in_turn() {
  const Setup s;
  const Communicators c;
  wait_in_vain(s, c);
  for (const ncclComm_t comm : {c.row, c.column, c.world}) ncclCommAbort(comm);
}

// This is right.
void aborts_together() {
  const Setup s;
  const Communicators c;
  wait_in_vain(s, c);
  ncclGroupStart();
  for (const ncclComm_t comm : {c.row, c.column, c.world}) ncclCommAbort(comm);
  ncclGroupEnd();
}

/// Some ranks send in rows before columns, others after, so that each waits for the next around the grid.
void cross(const Setup& s, const Communicators& c, cudaStream_t row_stream, cudaStream_t column_stream) {
  for (const ncclComm_t comm : {c.row, c.column}) connect(s, comm);
  const int rank = rank_of_world();
  const bool row_first = rank == 0 || rank == 3;
  for (int k = 0; k < 2; ++k) {
    if (row_first == (k == 0)) {
      broadcast(s.device, c.row, row_stream);
    } else {
      broadcast(s.other, c.column, column_stream);
    }
  }
  cudaStreamSynchronize(row_stream);
  cudaStreamSynchronize(column_stream);
}

void crossing_orders() {
  const Setup s;
  const Communicators c;
  cross(s, c, s.one, s.two);
}

void crossing_orders_in_one_stream() {
  const Setup s;
  const Communicators c;
  cross(s, c, s.one, s.one);
}

void overrun() {
  const Setup s;
  cudaMemsetAsync(s.device + 1, 0, bytes, s.one);
}

void misaligned_operand() {
  const Setup s;
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  cublasSetStream(handle, s.one);
  const auto at = [](double* memory) { return reinterpret_cast<cuDoubleComplex*>(memory); };
  const cuDoubleComplex one{1, 0}, zero{0, 0};
  cublasZgemm_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, at(s.device), 2, at(s.device + 9), 2, &zero,
                 at(s.other), 2);
  cudaStreamSynchronize(s.one);
  cublasDestroy(handle);
}

/// A plan of one line of count / 2 samples, in memory of the second array.
struct Plan {
  cufftHandle handle = 0;

  explicit Plan(const Setup& s) {
    long long n = count / 2;
    std::size_t work = 0;
    cufftCreate(&handle);
    cufftSetAutoAllocation(handle, 0);
    cufftSetStream(handle, s.one);
    cufftXtMakePlanMany(handle, 1, &n, &n, 1, n, CUDA_C_64F, &n, 1, n, CUDA_C_64F, 1, &work, CUDA_C_64F);
    if (work != bytes) std::fprintf(stderr, "wrong size\n"), _exit(1);
    cufftSetWorkArea(handle, s.other);
  }
  void run(double* data) const { cufftXtExec(handle, data, data, CUFFT_FORWARD); }
};

void unordered_transform() {
  const Setup s;
  const Plan plan(s);
  cudaMemsetAsync(s.other, 0, bytes, s.two);
  plan.run(s.device);
  cudaStreamSynchronize(s.one);
  cufftDestroy(plan.handle);
}

void overrunning_transform() {
  const Setup s;
  const Plan plan(s);
  plan.run(s.device + 2);
  cudaStreamSynchronize(s.one);
  cufftDestroy(plan.handle);
}

void plan_in_use() {
  const Setup s;
  const Plan plan(s);
  plan.run(s.device);
  cufftDestroy(plan.handle);
}

void plan_of_other_device() {
  const Setup s;
  const Plan plan(s);
  cudaSetDevice(1);
  cufftDestroy(plan.handle);
  cudaSetDevice(0);
}

void leaked_plan() {
  const Setup s;
  const Plan plan(s);
}

void misaligned_message() {
  const Setup s;
  const Communicators c;
  ncclAllReduce(reinterpret_cast<char*>(s.device) + 4, s.other, count - 1, ncclFloat64, ncclSum, c.world,
                s.one);
  cudaStreamSynchronize(s.one);
}

void stream_of_other_device() {
  const Setup s;
  cudaSetDevice(1);
  cudaMemsetAsync(s.device, 0, bytes, s.one);
  cudaSetDevice(0);
}

void memory_of_other_device() {
  const Setup s;
  cudaSetDevice(1);
  const Setup t;
  cudaMemcpyAsync(t.device, s.device, bytes, cudaMemcpyDeviceToDevice, t.one);
}

void event_of_other_device() {
  const Setup s;
  cudaSetDevice(1);
  const Setup t;
  cudaEventRecord(s.event, t.one);
}

void handle_of_other_device() {
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  cudaSetDevice(1);
  const Setup s;
  cublasSetStream(handle, s.one);
  cublasDestroy(handle);
}

void communicator_of_other_device() {
  const Communicators c;
  cudaSetDevice(1);
  const Setup s;
  broadcast(s.device, c.world, s.one);
  cudaStreamSynchronize(s.one);
}

void use_after_free() {
  const Setup s;
  double* memory = nullptr;
  cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, s.one);
  cudaFreeAsync(memory, s.one);
  cudaMemsetAsync(memory, 0, bytes, s.one);
}

void early_free() {
  const Setup s;
  double* memory = nullptr;
  cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, s.one);
  s.order(s.one, s.two);
  cudaMemsetAsync(memory, 0, bytes, s.two);
  cudaFreeAsync(memory, s.one);
}

void early_free_of_host_memory() {
  const Setup s;
  double* memory = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&memory), bytes);
  cudaMemcpyAsync(s.device, memory, bytes, cudaMemcpyHostToDevice, s.one);
  cudaFreeHost(memory);
}

void leak() {
  const Setup s;
  double* memory = nullptr;
  cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, s.one);
}

void leaked_stream() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
}

void leaked_event() {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
}

void leaked_handle() {
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
}

void leaked_communicator() {
  ncclUniqueId id{};
  ncclComm_t alone = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&alone, 1, id, 0);
}

void uninitialised_memory() {
  const Setup s;
  double* memory = nullptr;
  cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, s.one);
  cudaMemcpyAsync(s.pinned, memory, bytes, cudaMemcpyDeviceToHost, s.one);
  cudaStreamSynchronize(s.one);
  cudaFreeAsync(memory, s.one);
  if (std::isnan(s.pinned[0])) std::fprintf(stderr, "the memory holds NaN\n"), _exit(1);
}

const std::map<std::string, std::function<void()>> faults{
    {"nothing", nothing},
    {"missing_ready_event", missing_ready_event},
    {"missing_reuse_event", missing_reuse_event},
    {"host_reads_too_early", host_reads_too_early},
    {"host_writes_source", host_writes_source},
    {"pageable_copy", pageable_copy},
    {"host_touches_device", host_touches_device},
    {"mpi_touches_device", mpi_touches_device},
    {"mpi_adds_device", mpi_adds_device},
    {"mpi_reads_too_early", mpi_reads_too_early},
    {"wrong_count", wrong_count},
    {"wrong_root", wrong_root},
    {"wrong_type", wrong_type},
    {"wrong_order", wrong_order},
    {"wrong_message_length", wrong_message_length},
    {"skipped_collective", skipped_collective},
    {"absent_at_first_use", absent_at_first_use},
    {"aborts_in_turn", aborts_in_turn},
    {"aborts_together", aborts_together},
    {"crossing_orders", crossing_orders},
    {"crossing_orders_in_one_stream", crossing_orders_in_one_stream},
    {"overrun", overrun},
    {"misaligned_operand", misaligned_operand},
    {"unordered_transform", unordered_transform},
    {"overrunning_transform", overrunning_transform},
    {"plan_in_use", plan_in_use},
    {"plan_of_other_device", plan_of_other_device},
    {"leaked_plan", leaked_plan},
    {"misaligned_message", misaligned_message},
    {"stream_of_other_device", stream_of_other_device},
    {"memory_of_other_device", memory_of_other_device},
    {"event_of_other_device", event_of_other_device},
    {"handle_of_other_device", handle_of_other_device},
    {"communicator_of_other_device", communicator_of_other_device},
    {"use_after_free", use_after_free},
    {"early_free", early_free},
    {"early_free_of_host_memory", early_free_of_host_memory},
    {"leak", leak},
    {"leaked_stream", leaked_stream},
    {"leaked_event", leaked_event},
    {"leaked_handle", leaked_handle},
    {"leaked_communicator", leaked_communicator},
    {"uninitialised_memory", uninitialised_memory},
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 2 || faults.count(argv[1]) == 0) return 2;
  std::fprintf(stderr, "%s begins\n", argv[1]);
  faults.at(argv[1])();
  MPI_Finalize();
  return 0;
}
