// SPDX-License-Identifier: BSD-3-Clause
// The memory that control groups leave, read from a folder that stands for the system's.
#include "machine/control_groups.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/catch.hpp"

using gridlops::Index;

namespace {

constexpr Index none = gridlops::program::no_limit;

/// A system whose files are in a folder of their own.
class System {
 public:
  explicit System(const std::string& groups) {
    std::string name = (std::filesystem::temp_directory_path() / "gridlops-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root_ = name;
    write("proc/self/cgroup", groups);
  }
  ~System() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// A group of version 2.
  System& group(const std::string& path, const std::string& limit, Index in_use, Index of_files = 0) {
    const std::string folder = "sys/fs/cgroup" + path;
    write(folder + "/memory.max", limit + "\n");
    return with_use(folder, "memory.current", in_use, "", of_files);
  }
  /// One of version 1.
  System& old_group(const std::string& path, const std::string& limit, Index in_use, Index of_files = 0) {
    const std::string folder = "sys/fs/cgroup/memory" + path;
    write(folder + "/memory.limit_in_bytes", limit + "\n");
    return with_use(folder, "memory.usage_in_bytes", in_use, "total_", of_files);
  }
  Index left() const { return gridlops::program::left_by_control_groups(root_); }

 private:
  System& with_use(const std::string& folder, const std::string& file, Index in_use, const std::string& total,
                   Index of_files) {
    write(folder + "/" + file, std::to_string(in_use) + "\n");
    const std::string half = std::to_string(of_files / 2) + "\n", far = "999999\n";
    write(folder + "/memory.stat", "anon " + far + "inactive_anon " + far + "active_anon " + far +
                                       (total.empty() ? "" : "inactive_file " + far + "active_file " + far) +
                                       total + "inactive_file " + half + total + "active_file " + half);
    return *this;
  }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::filesystem::path root_;
};

}  // namespace

TEST_CASE("Without control groups, or without limits, nothing bounds memory") {
  CHECK(gridlops::program::left_by_control_groups("/nowhere") == none);
  CHECK(System("").left() == none);
  CHECK(System("0::/\n").left() == none);
  CHECK(System("0::/job\n").group("/job", "max", 400).left() == none);
  CHECK(System("3:memory:/job\n").old_group("/job", "9223372036854771712", 400).left() == none);
  CHECK(System("no line of the system").group("", "1000", 400).left() == none);
}

TEST_CASE("A control group leaves what is not in use, or only in use for files") {
  CHECK(System("0::/job\n").group("/job", "1000", 400).left() == 600);
  CHECK(System("0::/job\n").group("/job", "1000", 400, 50).left() == 650);
  CHECK(System("0::/job\n").group("/job", "1000", 1200, 50).left() == 0);
  CHECK(System("0::/\n").group("", "1000", 400).left() == 600);  // of a container
  CHECK(System("3:memory:/job\n").old_group("/job", "1000", 400, 50).left() == 650);
  CHECK(System("3:memory:/\n").old_group("", "1000", 400).left() == 600);
}

TEST_CASE("The tightest of nested control groups counts") {
  System nested("0::/slice/job/step\n");
  nested.group("/slice/job/step", "max", 100)
      .group("/slice/job", "1000", 300)
      .group("/slice", "5000", 4800, 40);
  CHECK(nested.left() == 240);
  nested.group("/slice", "max", 4800);
  CHECK(nested.left() == 700);
  nested.group("/slice/job/step", "600", 100);
  CHECK(nested.left() == 500);
  nested.group("/other", "10", 10);
  CHECK(nested.left() == 500);

  System old("7:cpu,cpuacct:/slice\n6:memory:/slice/job\n1:name=systemd:/slice\n0::/slice\n");
  old.old_group("/slice/job", "9223372036854771712", 100).old_group("/slice", "2000", 500);
  CHECK(old.left() == 1500);
  // The path is that of the machine, and the folder that of a container.
  CHECK(System("6:memory:/docker/0123\n").old_group("", "2000", 500).left() == 1500);
}

TEST_CASE("Controllers may share a hierarchy, and paths have colons") {
  CHECK(System("4:cpu,memory:/job\n").old_group("/job", "1000", 400).left() == 600);
  CHECK(System("4:memory_of_others:/job\n").old_group("/job", "1000", 400).left() == none);
  System pod("0::/pods/pod.slice:cri:0123\n");
  CHECK(pod.left() == none);
  CHECK(pod.group("/pods/pod.slice:cri:0123", "1000", 400).left() == 600);
}
