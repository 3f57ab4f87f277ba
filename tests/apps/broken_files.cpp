// SPDX-License-Identifier: BSD-3-Clause
// A system whose disk fails, to be loaded before the program. GRIDLOPS_TEST_FILE_FAULT is
// CALL:N:FAULT[:RANK]. From the N-th time (of the rank) on that a file on its way to become an output meets
// the call
//   resize, write, flush, rename or flush-folder, or any,
// the fault befalls it:
//   short    only a third of the bytes is written, each time
//   kill     the process ends before the call
//   NUMBER   the call fails with this errno
// With "count" as the call the number of calls is written to standard error at the end.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

struct Fault {
  std::string call, kind;
  long from = 0;
  bool is_here = false;
};

Fault read_fault() {
  const char* const variable = std::getenv("GRIDLOPS_TEST_FILE_FAULT");
  if (variable == nullptr) return {};
  std::array<std::string, 4> words;
  std::string_view rest(variable);
  for (std::string& word : words) {
    word = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return {words[0], words[2], std::strtol(words[1].c_str(), nullptr, 10),
          words[3].empty() || words[3] == (rank == nullptr ? "0" : rank)};
}

const Fault& fault() {
  static const Fault the_fault = read_fault();
  return the_fault;
}

long calls = 0;

__attribute__((destructor)) void tell() {
  if (fault().call == "count" && fault().is_here) std::fprintf(stderr, "calls: %ld\n", calls);
}

/// Whether the fault befalls this call.
bool befalls(std::string_view call) {
  const Fault& planned = fault();
  if (!planned.is_here || (planned.call != "any" && planned.call != "count" && planned.call != call))
    return false;
  if (++calls < planned.from || planned.call == "count") return false;
  if (planned.kind == "kill") kill(getpid(), SIGKILL);
  return true;
}

/// The errno of a call that fails; 0 if it is to succeed.
int error(std::string_view call) { return befalls(call) ? std::atoi(fault().kind.c_str()) : 0; }

bool is_temporary(std::string_view path) { return path.find(".tmp.") != std::string_view::npos; }

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int failed(int number) {
  errno = number;
  return -1;
}

}  // namespace

// In a build for files of any length, which Meson makes, these are the functions with 64 in their names.
extern "C" {

ssize_t pwrite(int fd, const void* buf, std::size_t nbytes, off_t offset) {
  static const auto write = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite64");
  if (!is_temporary(path_of(fd)) || !befalls("write")) return write(fd, buf, nbytes, offset);
  if (fault().kind == "short") return write(fd, buf, (nbytes + 2) / 3, offset);
  return failed(std::atoi(fault().kind.c_str()));
}

int ftruncate(int fd, off_t length) noexcept {
  static const auto resize = next<int(int, off_t)>("ftruncate64");
  const int number = is_temporary(path_of(fd)) ? error("resize") : 0;
  return number == 0 ? resize(fd, length) : failed(number);
}

int fsync(int fd) {
  static const auto flush = next<int(int)>("fsync");
  struct stat status {};
  const bool is_folder = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
  const int number = is_folder ? error("flush-folder") : is_temporary(path_of(fd)) ? error("flush") : 0;
  return number == 0 ? flush(fd) : failed(number);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): `new` is no name here
int rename(const char* from, const char* to) noexcept {
  static const auto rename = next<int(const char*, const char*)>("rename");
  const int number = is_temporary(from) ? error("rename") : 0;
  return number == 0 ? rename(from, to) : failed(number);
}
}
