// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/output_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

namespace gridlops {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::message_of;

/// A folder of this test's own, removed at its end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("gridlops-folder-" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

void put(const std::string& path) { std::ofstream(path) << "a life's work"; }

bool takes_a(const std::string& name) { return name == "A.npy"; }

TEST_CASE("a folder is claimed that is missing, empty, or without what could be replaced") {
  const Scratch scratch;
  claim_folder(scratch / "new/inner", "problem", takes_a);
  CHECK(fs::is_regular_file(scratch / "new/inner/.gridlops-problem"));
  fs::create_directory(scratch / "empty");
  CHECK_NOTHROW(claim_folder(scratch / "empty", "problem", takes_a));
  fs::create_directory(scratch / "mixed");
  put(scratch / "mixed/thesis.txt");
  CHECK_NOTHROW(claim_folder(scratch / "mixed", "problem", takes_a));
  CHECK(fs::file_size(scratch / "mixed/thesis.txt") == 13);
}

TEST_CASE("a folder with a foreign entry in the way is refused, and left as it is") {
  const Scratch scratch;
  for (const char* const mark : {"", ".gridlops-problem", ".gridlops-tiles"}) {
    const std::string folder = scratch / "folder";
    fs::create_directory(folder);
    put(folder + "/A.npy");
    // A mark of another kind is none, nor is a link or a folder of that name.
    if (*mark != '\0') fs::create_symlink("A.npy", folder + "/" + mark);
    if (std::string(mark) == ".gridlops-tiles")
      claim_folder(folder, "space", [](const auto&) { return false; });
    const std::string said = message_of<OutputError>([&] { claim_folder(folder, "problem", takes_a); });
    CHECK(contains(said, folder + ": A.npy is there, which no output of this kind has made"));
    CHECK(fs::file_size(folder + "/A.npy") == 13);
    CHECK(!fs::is_regular_file(fs::symlink_status(folder + "/.gridlops-problem")));
    fs::remove_all(folder);
  }
}

TEST_CASE("what was made in a claimed folder may be replaced, by as many jobs as there are") {
  const Scratch scratch;
  const std::string folder = scratch / "own";
  claim_folder(folder, "problem", takes_a);
  put(folder + "/A.npy");
  CHECK_NOTHROW(claim_folder(folder, "problem", takes_a));
  CHECK_THROWS_AS(claim_folder(folder, "tiles", takes_a), OutputError);
}

TEST_CASE("a folder that cannot be made is an error of output") {
  const Scratch scratch;
  put(scratch / "file");
  CHECK_THROWS_AS(claim_folder(scratch / "file", "problem", takes_a), OutputError);
  CHECK_THROWS_AS(claim_folder(scratch / "file/inner", "problem", takes_a), OutputError);
}

}  // namespace
}  // namespace gridlops
