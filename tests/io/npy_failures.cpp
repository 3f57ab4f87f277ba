// SPDX-License-Identifier: BSD-3-Clause
// A failed write leaves nothing behind that was not there before.
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"
#include "io/files/temporary_file.hpp"
#include "io/npy_files.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

DistMatrix<double> some_matrix(const GridPtr& grid) {
  DistMatrix<double> A(grid, column_blocks(*grid, 20, 12));
  A.fill([](Index i, Index j) { return counter_uniform(1, i, j); });
  return A;
}

/// The error of write_matrix, which is the same on every member of the grid; idle ranks have none.
std::string failure(const std::string& path, const DistMatrix<double>& A) {
  const std::string text = message_of<OutputError>([&] { write_matrix(path, A); });
  CHECK(text.empty() != A.grid()->is_member());
  world().barrier();
  return text;
}

}  // namespace

TEST_CASE("Where no file can be made nothing is left", "[npy]") {
  const ScratchFolder folder;
  const std::string pipe = folder.named_pipe("pipe");
  if (world().rank() == 0) std::filesystem::create_directory(folder.file("folder"));
  world().barrier();
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    const DistMatrix<double> A = some_matrix(grid);
    const std::string nowhere = failure(folder.file("missing/A.npy"), A);
    const std::string taken = failure(folder.file("folder"), A);
    const std::string special = failure(pipe, A);
    if (grid->is_member()) {
      CHECK(contains(nowhere, "missing/A.npy: cannot "));
      CHECK(contains(nowhere, "No such file or directory"));
      CHECK(contains(taken, "is no regular file"));
      CHECK(contains(special, "is no regular file"));
    }
    CHECK(folder.names() == std::vector<std::string>{"folder", "pipe"});
    world().barrier();
  }
}

TEST_CASE("A disk that is full for any rank leaves the old file", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    const DistMatrix<double> A = some_matrix(grid);
    for (const bool old_file : {false, true}) {
      if (world().rank() == 0) {
        std::filesystem::remove(path);
        if (old_file) std::ofstream(path) << "old";
      }
      const int members = grid->shape().size();
      // The last member cannot write, or the first cannot even make the file so long.
      for (const int poor_rank : {members - 1, 0}) {
        std::string text;
        {
          const FileSizeLimit limit(world().rank() == poor_rank ? rlim_t{128} : RLIM_INFINITY);
          text = failure(path, A);
        }
        CAPTURE(text);
        if (grid->is_member()) {
          CHECK(contains(text, "A.npy: cannot "));
          CHECK(contains(text, "File too large"));
          CHECK(contains(text, poor_rank == 0 ? "2048 bytes long" : "at byte "));
        }
        if (world().rank() == 0) {
          CHECK(folder.names() ==
                (old_file ? std::vector<std::string>{"A.npy"} : std::vector<std::string>{}));
          CHECK(contents(path) == (old_file ? "old" : ""));
        }
        world().barrier();
      }
    }
  }
}

TEST_CASE("A link with the name of a temporary file leads nowhere", "[npy]") {
  const ScratchFolder folder;
  if (world().rank() == 0) {
    const std::string path = folder.file("A.npy");
    const std::string next = TemporaryFile(path).name();
    std::filesystem::create_symlink("elsewhere", next);
    TemporaryFile file(path, Access::owner);
    CHECK(file.name() != next);
    struct stat status {};
    CHECK((stat(file.name().c_str(), &status) == 0 && (status.st_mode & 0777) == 0600));
    CHECK((std::filesystem::is_symlink(next) && !std::filesystem::exists(folder.file("elsewhere"))));
    CHECK_THROWS_AS(OutputFile::open(next, next), OutputError);
  }
}

TEST_CASE("A link stays, and what it points to is replaced", "[npy]") {
  const ScratchFolder folder;
  if (world().rank() == 0) {
    std::ofstream(folder.file("real.npy")) << "old";
    std::filesystem::create_symlink("real.npy", folder.file("link.npy"));
  }
  world().barrier();
  const DistMatrix<double> A = some_matrix(square_grid());
  write_matrix(folder.file("link.npy"), A);
  CHECK(read_matrix_header(world(), folder.file("real.npy")).rows == 20);
  CHECK(std::filesystem::is_symlink(folder.file("link.npy")));
}

TEST_CASE("A link to a file that is not there yet stays, and leads to what is written", "[npy]") {
  const ScratchFolder folder;
  namespace fs = std::filesystem;
  if (world().rank() == 0) {
    fs::create_directories(folder.file("scratch/deep"));
    fs::create_symlink("scratch/deep", folder.file("short"));
    fs::create_symlink("../B.npy", folder.file("short/up.npy"));  // beside what the folder's link leads to
    fs::create_symlink("short/up.npy", folder.file("A.npy"));
    fs::create_symlink("round.npy", folder.file("circle.npy"));
    fs::create_symlink("circle.npy", folder.file("round.npy"));
  }
  world().barrier();
  const DistMatrix<double> A = some_matrix(square_grid());
  write_matrix(folder.file("A.npy"), A);
  CHECK(read_matrix_header(world(), folder.file("scratch/B.npy")).rows == 20);
  CHECK((fs::is_symlink(folder.file("A.npy")) && fs::is_symlink(folder.file("short/up.npy"))));
  if (A.grid()->is_member())
    CHECK(contains(message_of<OutputError>([&] { write_matrix(folder.file("circle.npy"), A); }),
                   "is it a circle"));
  if (world().rank() == 0) {
    write_text_file(folder.file("A.npy"), [once = true]() mutable {
      return std::string(std::exchange(once, false) ? "text" : "");
    });
    CHECK(contents(folder.file("scratch/B.npy")) == "text");
    CHECK(written_file(folder.file("A.npy")) == folder.file("short/../B.npy"));
  }
}

namespace {

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status;
}

/// While it lives, this process is another user's, if it may choose: root may write where others may not.
class OrdinaryUser {
 public:
  OrdinaryUser() : before_(geteuid()) {
    if (before_ == 0 && seteuid(65534) != 0) std::perror("seteuid");
  }
  ~OrdinaryUser() {
    if (seteuid(before_) != 0) std::perror("seteuid");
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  uid_t before_;
};

}  // namespace

TEST_CASE("A file passes on its mode, owner and group to what replaces it", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  const DistMatrix<double> A = some_matrix(square_grid());
  for (const mode_t mode : {0600U, 0640U, 0666U, 0604U, 0755U}) {
    if (world().rank() == 0) {
      std::ofstream(path) << "old";
      REQUIRE(chmod(path.c_str(), mode) == 0);
      if (geteuid() == 0) REQUIRE(chown(path.c_str(), 65534, 65533) == 0);
      // Nobody else may read what is not finished.
      const TemporaryFile unfinished(path);
      CHECK((status_of(unfinished.name()).st_mode & 07777) == 0600);
    }
    world().barrier();
    write_matrix(path, A);
    if (world().rank() != 0) continue;
    const struct stat now = status_of(path);
    CAPTURE(mode);
    CHECK((now.st_mode & 07777) == mode);
    if (geteuid() == 0) CHECK((now.st_uid == 65534 && now.st_gid == 65533));
    std::filesystem::remove(path);
  }
}

TEST_CASE("A group that a file cannot keep gets no more than everybody", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.txt");
  if (world().rank() != 0 || geteuid() != 0) return;
  REQUIRE(chmod(folder.file("").c_str(), 0777) == 0);
  std::ofstream(path) << "old";
  REQUIRE((chown(path.c_str(), 0, 65533) == 0 && chmod(path.c_str(), 0662) == 0));
  {
    const OrdinaryUser user;
    write_text_file(path,
                    [once = true]() mutable { return std::string(std::exchange(once, false) ? "new" : ""); });
  }
  const struct stat now = status_of(path);
  CHECK((now.st_uid == 65534 && now.st_gid != 65533));
  CHECK((now.st_mode & 07777) == 0622);
}

TEST_CASE("A file that may not be written is left alone, and all ranks say so", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy");
  if (world().rank() == 0) {
    std::ofstream(path) << "old";
    REQUIRE(chmod(folder.file("").c_str(), 0777) == 0);
    REQUIRE(chmod(path.c_str(), 0444) == 0);
  }
  world().barrier();
  {
    const DistMatrix<double> A = some_matrix(square_grid());
    const OrdinaryUser user;
    const std::string text = failure(path, A);
    if (A.grid()->is_member()) {
      CHECK(contains(text, "A.npy: exists and may not be written: Permission denied"));
      CHECK(contains(text, "chmod u+w"));
    }
    if (world().rank() == 0) CHECK_THROWS_AS(check_text_file(path), OutputError);
  }
  CHECK(folder.names() == std::vector<std::string>{"A.npy"});
  CHECK(contents(path) == "old");
}

TEST_CASE("One holder has a lock, and a file that a killed one left is no lock", "[npy]") {
  const ScratchFolder folder;
  if (world().rank() != 0) return;
  const std::string path = folder.file("lock");
  std::ofstream(path) << "process 1 on elsewhere";
  {
    const LockFile held(path, "write there");
    const std::string text = message_of<OutputError>([&] { const LockFile second(path, "write there"); });
    CHECK(contains(text, message("is held by process ", getpid(), " on ")));
    CHECK(contains(text, "which may still write there"));
  }
  CHECK(folder.names().empty());
  {
    const LockFile again(path, "write there");
    std::filesystem::remove(path);  // as somebody may who was told that it frees the lock
    const LockFile other(path, "write there");
    CHECK(folder.names() == std::vector<std::string>{"lock"});
  }
  CHECK(folder.names().empty());
  std::filesystem::create_directory(path);
  CHECK_THROWS_AS(LockFile(path, "write there"), OutputError);
}

TEST_CASE("Ranks that read or write different files, or different matrices, all throw", "[npy]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.npy"), elsewhere = folder.file("B.npy");
  const int ranks = world().size();
  if (ranks == 1) return;
  const auto grid = std::make_shared<const ProcessGrid>(world(), GridShape{ranks, 1}, make_host_backend());
  const DistMatrix<double> A = some_matrix(grid), narrow(grid, column_blocks(*grid, 20, 11));
  write_matrix(path, A);
  write_matrix(elsewhere, A);
  const MatrixHeader header = read_matrix_header(world(), path);
  const std::vector<std::string> files = folder.names();
  for (const int odd : {0, ranks - 1}) {
    const bool am_odd = world().rank() == odd;
    const std::string& mine = am_odd ? elsewhere : path;
    const std::string differing = difference("the file", path, elsewhere, odd, ranks);
    const std::string other_matrix = "the matrix: ";
    check_disagreement(world(), {differing}, [&] { read_matrix_header(world(), mine); });
    check_disagreement(world(), {differing}, [&] { read_array_header(world(), mine); });
    check_disagreement(world(), {differing}, [&] { write_matrix(mine, A); });
    check_disagreement(world(), {other_matrix, "20 x 12", "20 x 11"},
                       [&] { write_matrix(path, am_odd ? narrow : A); });
    DistMatrix<double> X(grid, row_blocks(*grid, 20, 12)), Y(grid, column_blocks(*grid, 20, 12));
    check_disagreement(world(), {differing}, [&] { read_matrix(mine, header, X); });
    check_disagreement(world(), {other_matrix}, [&] { read_matrix(path, header, am_odd ? Y : X); });
    check_disagreement(world(), {difference("operation", "read_matrix", "write_matrix", odd, ranks)}, [&] {
      if (am_odd) return write_matrix(path, A);
      read_matrix(path, header, X);
    });
    const DistMatrix<double> column(grid, row_blocks(*grid, 20, 1));
    check_disagreement(world(), {difference("the dimensions", "2", "1", odd, ranks)},
                       [&] { write_matrix(path, column, am_odd ? 1 : 2); });
    // Two arrays that lie alike.
    const Dims dims = Dims::cut_along({2 * ranks, 3}, 0, ranks), flat = Dims::cut_along({ranks, 6}, 0, ranks);
    const DistMatrix<double> array(grid, array_space(grid, dims, Axis::all).layout(1));
    check_disagreement(world(), {difference("the array", dims.describe(), flat.describe(), odd, ranks)},
                       [&] { write_array(path, am_odd ? flat : dims, array); });
    // A rank that has another idea of what is in the file.
    MatrixHeader wrong = header;
    wrong.rows = 19;
    const Ending ending = ending_of([&] { read_matrix(path, am_odd ? wrong : header, X); });
    CHECK((ending.type != nullptr && *ending.type == typeid(ShapeError)));
    CHECK(rank_of(ending) == odd);
    CHECK(contains(ending.text, "is 19 x 12, but it is to be read into a matrix of 20 x 12"));
    CHECK(all_ended_alike(world(), ending));

    CHECK(folder.names() == files);
    read_matrix(path, header, X);
    CHECK(mismatches(X, [](Index i, Index j) { return counter_uniform(1, i, j); }) == 0);
    world().barrier();
  }
}
