// SPDX-License-Identifier: BSD-3-Clause
// The faults of one rank in calls of MPI and BLAS and in operations on files, to be loaded before a program:
// GRIDLOPS_FAULT, see docs/faults.md. A line on standard error says when the fault happens, by the clock
// CLOCK_MONOTONIC.
#include <cblas.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

#include "support/planned_fault.hpp"

namespace {

PlannedFault& fault() {
  static PlannedFault the_fault = PlannedFault::from_environment();
  return the_fault;
}

bool is_of_this_rank() {
  static const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return fault().rank == (rank == nullptr ? 0 : std::atoi(rank));
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void tell() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::fprintf(stderr, "fault at %ld.%06ld\n", static_cast<long>(now.tv_sec), now.tv_nsec / 1000);
}

/// Whether the operation that begins is the planned one. What ends or delays the process befalls it here.
bool befalls(std::string_view operation) {
  if (!is_of_this_rank() || !fault().befalls(fault().rank, operation)) return false;
  tell();
  fault().befall_process();
  return true;
}

long operations_on_files = 0;

__attribute__((destructor)) void tell_count() {
  if (fault().operation == "count" && is_of_this_rank())
    std::fprintf(stderr, "calls: %ld\n", operations_on_files);
}

/// Whether an operation on a file fails. Once one has failed, all that are meant do.
bool file_fails(std::string_view operation) {
  static bool is_broken = false;
  ++operations_on_files;
  if (fault().operation == "any") operation = "any";
  if (!is_of_this_rank() || operation != fault().operation) return false;
  is_broken = is_broken || befalls(operation);
  return is_broken;
}

int error_number() { return fault().kind == "enospc" ? ENOSPC : std::atoi(fault().kind.c_str()); }

/// The errno of an operation that fails; 0 if it is to succeed.
int error(std::string_view operation) { return file_fails(operation) ? error_number() : 0; }

/// Tells what reached the disk or took its name, in order.
void record(const char* what, const std::string& path) {
  if (fault().operation == "record" && is_of_this_rank()) std::fprintf(stderr, "%s %s\n", what, path.c_str());
}

/// A file of A on a disk.
bool is_nameless(const std::string& path) { return path.ends_with(" (deleted)"); }

/// One that stays.
bool is_kept(const std::string& path) { return path.ends_with(".tiles"); }

bool is_temporary(std::string_view path) { return path.find(".tmp.") != std::string_view::npos; }

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// Longer than any limit of a test.
void block_once() {
  static std::once_flag first;
  std::call_once(first, [] { sleep(12); });
}

void block_if(std::string_view operation) {
  if (file_fails(operation)) block_once();
}

int failed(int number) {
  errno = number;
  return -1;
}

}  // namespace

extern "C" {

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  befalls("MPI_Allreduce");
  return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  befalls("MPI_Bcast");
  return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  befalls("MPI_Isend");
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, blasint m, blasint n,
                 blasint k, double alpha, const double* A, blasint lda, const double* B, blasint ldb,
                 double beta, double* C, blasint ldc) {
  static const auto multiply = next<decltype(cblas_dgemm)>("cblas_dgemm");
  const bool is_faulty = befalls("cblas_dgemm");
  // A fault does not ask whether memory may be written.
  if (is_faulty && fault().kind == "flip") const_cast<double*>(A)[3] = -A[3];
  multiply(order, op_a, op_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
  if (is_faulty && fault().kind == "nan") C[0] = std::numeric_limits<double>::quiet_NaN();
}

// In a build for files of any length, which Meson makes, these are the functions with 64 in their names.

ssize_t pread(int fd, void* buf, std::size_t nbytes, off_t offset) {
  static const auto read = next<ssize_t(int, void*, std::size_t, off_t)>("pread64");
  static std::mutex threads_read;
  const auto befalls_it = [&] {
    const std::lock_guard one_at_a_time(threads_read);
    const std::string path = path_of(fd);
    return is_nameless(path) ? file_fails("read") : is_kept(path) && file_fails("read-kept");
  };
  if (!befalls_it()) return read(fd, buf, nbytes, offset);
  const std::string& kind = fault().kind;
  if (kind == "short") return read(fd, buf, nbytes / 3 / 4096 * 4096 + 4096, offset);
  if (kind == "block") block_once();
  if (kind != "flip" && kind != "block") return failed(error_number());
  const ssize_t count = read(fd, buf, nbytes, offset);
  if (kind == "flip" && count > 0) *static_cast<char*>(buf) ^= 1;
  return count;
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  static const auto take = next<int(int, int, off_t, off_t)>("fallocate64");
  return is_nameless(path_of(fd)) && file_fails("take-room") ? failed(error_number())
                                                             : take(fd, mode, offset, length);
}

ssize_t pwrite(int fd, const void* buf, std::size_t nbytes, off_t offset) {
  static const auto write = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite64");
  if (is_nameless(path_of(fd))) {
    block_if("store");
    return write(fd, buf, nbytes, offset);
  }
  if (!is_temporary(path_of(fd)) || !file_fails("write")) return write(fd, buf, nbytes, offset);
  if (fault().kind == "short") return write(fd, buf, (nbytes + 2) / 3, offset);
  return failed(error_number());
}

int ftruncate(int fd, off_t length) noexcept {
  static const auto resize = next<int(int, off_t)>("ftruncate64");
  const int number = is_temporary(path_of(fd)) ? error("resize") : 0;
  return number == 0 ? resize(fd, length) : failed(number);
}

int fdatasync(int fd) {
  static const auto flush = next<int(int)>("fdatasync");
  if (is_nameless(path_of(fd))) block_if("settle");
  return flush(fd);
}

int fsync(int fd) {
  static const auto flush = next<int(int)>("fsync");
  struct stat status {};
  const bool is_folder = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
  const int number = is_folder ? error("flush-folder") : is_temporary(path_of(fd)) ? error("flush") : 0;
  if (number != 0) return failed(number);
  record("flushed", path_of(fd));
  return flush(fd);
}

int rename(const char* from, const char* to) noexcept {
  static const auto rename = next<int(const char*, const char*)>("rename");
  const int number = is_temporary(from) ? error("rename") : 0;
  if (number != 0) return failed(number);
  record("renamed", from);
  record("to", to);
  return rename(from, to);
}
}
