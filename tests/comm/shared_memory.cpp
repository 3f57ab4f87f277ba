// SPDX-License-Identifier: BSD-3-Clause
// Ranks read each other's memory in place.
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <limits>
#include <thread>

#include "comm/mpi/shared_window.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "support/catch.hpp"
#include "support/grids.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

// The functions of the system and of MPI below return and record these while a test pretends.
pid_t pretended_process = 0;
bool yields = true;
double longest_pause = 0, last_look = 0;  // in seconds of this thread's work between two looks for messages
Index turns = 0;

double seconds_of_work() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// While it lives, another process has a file open under this number.
class Stranger {
 public:
  Stranger(int file, Index descriptor) {
    std::array<int, 2> ready{};
    REQUIRE(pipe(ready.data()) == 0);
    process_ = fork();
    if (process_ == 0) {
      const bool done = dup2(file, static_cast<int>(descriptor)) >= 0 && write(ready[1], "", 1) == 1;
      if (done) pause();
      _exit(1);
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Stranger() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
};

Index bytes_in_use(Index descriptor) {
  struct stat state {};
  REQUIRE(fstat(static_cast<int>(descriptor), &state) == 0);
  return 512 * Index{state.st_blocks};
}

}  // namespace

extern "C" pid_t getpid() noexcept {
  return pretended_process > 0 ? pretended_process : static_cast<pid_t>(syscall(SYS_getpid));
}
extern "C" int sched_yield() noexcept {
  ++turns;
  return yields ? static_cast<int>(syscall(SYS_sched_yield)) : 0;
}
extern "C" int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  const double now = seconds_of_work();
  if (last_look > 0) longest_pause = std::max(longest_pause, now - last_look);
  last_look = now;
  return PMPI_Iprobe(source, tag, comm, found, status);
}

TEST_CASE("Memory is where it says, and memory that is too small says that it is nowhere") {
  const auto backend = make_shared_host_backend();
  for (const Index bytes : {Index{1} << 12, Index{1} << 20, (Index{1} << 20) + 1}) {
    const Buffer<std::byte> first(backend, bytes), second(backend, bytes);
    const SharedAddress begin = shared_address(*backend, first.data()),
                        other = shared_address(*backend, second.data());
    CHECK((other.descriptor == begin.descriptor && other.serial == begin.serial));
    CHECK(std::abs(other.offset - begin.offset) >= bytes);
    for (const Buffer<std::byte>* buffer : {&first, &second}) {
      for (const Index offset : {Index{0}, Index{1}, bytes - 1}) {
        const SharedAddress address = shared_address(*backend, buffer->data() + offset);
        buffer->data()[offset] = std::byte(offset % 251);
        std::byte found{};
        CHECK(pread(static_cast<int>(address.descriptor), &found, 1, address.offset) == 1);
        CHECK(found == std::byte(offset % 251));
        CHECK(address.offset < address.file_bytes);
      }
    }
  }
  const int elsewhere = 0;
  CHECK_FALSE(shared_address(*backend, &elsewhere).is_shared());
  const Buffer<std::byte> small(backend, 16);
  CHECK_FALSE(shared_address(*backend, small.data()).is_shared());
  CHECK_FALSE(shared_address(*make_host_backend(), small.data()).is_shared());
}

TEST_CASE("Memory that is given back goes back to the system, and its place is used again") {
  const auto backend = make_shared_host_backend();
  constexpr Index size = 1 << 18;
  const Buffer<std::byte> first(backend, size);
  const Index descriptor = shared_address(*backend, first.data()).descriptor,
              before = bytes_in_use(descriptor);
  Index reach = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Buffer<std::byte>> blocks;
    for (int k = 0; k < 30; ++k) {
      blocks.emplace_back(backend, size + 5000 * ((k * 7 + round) % 11));
      std::fill_n(blocks.back().data(), blocks.back().size(), std::byte(k));
    }
    CHECK(bytes_in_use(descriptor) - before >= 30 * size);
    for (std::size_t k = 0; k < blocks.size(); k += 2) blocks[k] = {};
    for (std::size_t k = 1; k < blocks.size(); k += 2)
      CHECK(std::count(blocks[k].data(), blocks[k].data() + blocks[k].size(), std::byte(k)) ==
            blocks[k].size());
    const Index end = shared_address(*backend, first.data()).file_bytes;
    if (round == 0) reach = end;
    CHECK(end == reach);
  }
  CHECK(bytes_in_use(descriptor) - before <= 1 << 16);
  CHECK_THROWS_AS(backend->allocate(std::numeric_limits<Index>::max()), OutOfMemory);
}

TEST_CASE("Too many open files are called that, on all ranks") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  rlimit lower = limit;
  lower.rlim_cur = 3;
  if (world().rank() == world().size() - 1) REQUIRE(setrlimit(RLIMIT_NOFILE, &lower) == 0);
  std::string text;
  try {
    SharedWindow window(world());
  } catch (const Error& error) {
    text = error.what();
    CHECK(error.status() == ExitStatus::internal);
  }
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CAPTURE(text);
  CHECK(contains(text, "limit of 3"));
  CHECK(contains(text, "ulimit -n"));
}

TEST_CASE("What another process has open under the same number is not taken for a rank's memory") {
  const int ranks = world().size();
  if (ranks == 1) return;
  const auto backend = make_shared_host_backend();
  Buffer<std::byte> shared(backend, 1 << 16);
  const Index descriptor = shared_address(*backend, shared.data()).descriptor;
  const std::string fifo = "/tmp/gridlops_test_fifo." + std::to_string(syscall(SYS_getpid));
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int queue = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  unlink(fifo.c_str());
  const int memory = memfd_create("gridlops", MFD_CLOEXEC),
            short_file = memfd_create("gridlops", MFD_CLOEXEC);
  REQUIRE(ftruncate(memory, Index{1} << 30) == 0);
  // The rank writes this to be recognised.
  const Index me = world().rank();
  REQUIRE(pwrite(memory, &me, sizeof me, 0) == sizeof me);
  shared = {};
  for (const int file : {memory, short_file, queue}) {
    const Stranger stranger(file, descriptor);
    if (world().rank() == ranks - 1) pretended_process = stranger.process();
    CHECK(make_host_communicator(world(), "auto")->transport() == "mpi");
    const std::string text =
        message_of<CommunicationError>([] { make_host_communicator(world(), "shared"); });
    CHECK(contains(text, "not the file of that rank"));
    CHECK(contains(text, "use the transport mpi"));
    pretended_process = 0;
  }
  for (const int file : {memory, short_file, queue}) close(file);
  CHECK(make_host_communicator(world(), "auto")->transport() == "shared");
}

TEST_CASE("A rank that waits very long does not stop looking for messages", "[.full]") {
  if (world().size() < 2) return;
  SharedWindow window(world());
  const auto backend = make_shared_host_backend();
  const MatrixView<const double> nothing;
  if (world().rank() == 0) {
    yields = false;
    turns = 0;
    last_look = longest_pause = 0;
    window.publish(*backend, nothing);
    window.block_of<double>(1);
    yields = true;
    CHECK(turns > Index{1} << 31);
    CHECK(longest_pause < 0.2);
  } else {
    // This is longer than another rank needs for 2³¹ turns.
    if (world().rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
    window.publish(*backend, nothing);
  }
  window.finish_reading();
}

TEST_CASE(
    "A shared window shows what the others wrote last, also in memory that was given back and taken anew") {
  const auto backend = make_shared_host_backend();
  const int ranks = world().size(), me = world().rank();
  SharedWindow window(world());
  for (int round = 0; round < 200; ++round) {
    const Index rows = 1000 + 13 * (round % 7), cols = 1 + round % 3;
    const Buffer<double> memory(backend, rows * cols);
    const MatrixView<double> mine = memory.matrix(rows, cols);
    for (Index k = 0; k < mine.size(); ++k) mine.data[k] = 1000.0 * round + me;
    const SharedWindow::Round shown = window.publish(*backend, MatrixView<const double>(mine));
    for (int rank = 0; rank < ranks; ++rank) {
      const MatrixView<const double> theirs = window.block_of<double>(rank);
      REQUIRE((theirs.rows == rows && theirs.cols == cols));
      CHECK(theirs(0, 0) == 1000.0 * round + rank);
      CHECK(theirs(rows - 1, cols - 1) == 1000.0 * round + rank);
    }
    window.finish_reading();
    for (int rank = 0; rank < ranks; ++rank) window.wait_for_reader(rank, shown);
    for (Index k = 0; k < mine.size(); ++k) mine.data[k] = -1;
  }
}

TEST_CASE("A shared window takes shared memory only") {
  SharedWindow window(world());
  const double here = 0;
  CHECK_THROWS_AS(window.publish(*make_host_backend(), MatrixView<const double>(&here, 1, 1)), UsageError);
}

TEMPLATE_TEST_CASE("Products that read in place send nothing, and read what the formulas say", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 131, n = 97, nrhs = 11, size = sizeof(T);
  const std::unique_ptr<Communicator> neighbours = make_host_communicator(world(), "shared");
  for (const GridShape shape : all_shapes(world().size())) {
    const auto grid = std::make_shared<const ProcessGrid>(*neighbours, shape, make_shared_host_backend());
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = dense_operator<T>(grid, algorithm, m, n, random_elements<T>(1));
      DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->range().layout(nrhs));
      X.fill(random_elements<T>(2));
      Y.fill(random_elements<T>(3));
      CAPTURE(describe(*grid), name_of(algorithm));
      CHECK(dot_test(*A, nrhs).passed);  // takes the memory, on which the ranks agree
      if (!grid->is_member()) continue;
      const TrafficSince since(grid->comm());
      A->apply(T(1), X, T(0), Y);
      const Index forward = since.read_in_place();
      A->apply_adjoint(T(1), Y, T(0), X);
      const Index adjoint = since.read_in_place() - forward;
      CHECK(since.nothing());
      const Layout blocks = blocks_2d(*grid, m, n);
      const Index m_p = blocks.row_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index n_q = blocks.col_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index P = grid->rows(), Q = grid->cols();
      if (algorithm == Algorithm::summa) {
        const Range rows_of_X = X.local_row_range(),
                    columns_of_A = blocks.col_range(*grid, 0, grid->my_col());
        const Index r_q = X.local().cols, own = intersect(rows_of_X, columns_of_A).size;
        CHECK(forward == (m_p * (n - n_q) + (n - rows_of_X.size) * r_q) * size);
        CHECK(adjoint == (m * rows_of_X.size - m_p * own + (m - m_p) * r_q) * size);
      } else {
        const Index n_qp = X.local().rows, m_pq = Y.local().rows;
        CHECK(forward == ((n_q - n_qp) * nrhs + m_pq * nrhs * (Q - 1)) * size);
        CHECK(adjoint == ((m_p - m_pq) * nrhs + n_qp * nrhs * (P - 1)) * size);
      }
    }
  }
}
