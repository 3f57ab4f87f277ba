// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gridlops/comm/mpi.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// `address` points to the MPI_Comm of an mpi4py communicator. Collective over it.
std::unique_ptr<MpiSession> make_session(std::uintptr_t address, bool ends_job) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Python knows addresses as numbers
  return std::make_unique<MpiSession>(*reinterpret_cast<const MPI_Comm*>(address),
                                      ends_job ? WhenStuck::end_job : WhenStuck::throw_error);
}

/// The session of a `with` block in Python.
class Session {
 public:
  Session(std::uintptr_t address, bool ends_job) : session_(make_session(address, ends_job)) {}

  /// Collective; waits for all ranks.
  void close() { session_.reset(); }

  /// Ends without the other ranks, as when a C++ exception unwinds the stack.
  void abandon() {
    struct LeftBlock {};
    try {
      const auto session = std::move(session_);
      throw LeftBlock();
    } catch (const LeftBlock&) {
    }
  }

  void end_job(int status, const std::string& text) {
    session_->run([&]() -> int { throw Error(static_cast<ExitStatus>(status), text, KnownTo::one_rank); });
  }

 private:
  std::unique_ptr<MpiSession> session_;
};

}  // namespace

void bind_session(py::module_& native) {
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::class_<Session>(native, "Session")
      .def(py::init<std::uintptr_t, bool>(), unlocked)
      .def("close", &Session::close, unlocked)
      .def("abandon", &Session::abandon, unlocked)
      .def("end_job", &Session::end_job, unlocked);
  native.def(
      "keep_alive", [] { gridlops::keep_alive(); }, unlocked);
}

}  // namespace gridlops::python
