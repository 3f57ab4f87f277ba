// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// The exit status with which a program should end; the values follow sysexits.h where it has one.
enum class ExitStatus {
  done = 0,
  check_failed = 1,   ///< a result was computed and found wrong
  usage = 2,          ///< an argument, option or shape that cannot be right
  not_converged = 3,  ///< the output is written, but some column neither converged nor stagnated
  bad_input = 65,     ///< an input file is unreadable or inconsistent
  internal = 70,      ///< a fault of this program or of a library below it
  out_of_memory = 71,
  bad_output = 74,  ///< an output file could not be written
  try_again = 75,   ///< a peer was lost or timed out, or a solver wrote the checkpoint that it was asked for
};

/// Which ranks know of an error: all that took part, which throw the same error, or perhaps only the rank
/// that throws it. In the second case the others may wait for that rank, so the job must end, unless
/// attempt() tells them.
enum class KnownTo { all_ranks, one_rank };

/// The base of all errors that this library throws. The message says what is wrong, with the values, why it
/// matters, and what to try. Unless a function's comment says otherwise, it throws the same error on all
/// ranks that call it.
class GRIDLOPS_EXPORT Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& message, KnownTo known_to = KnownTo::all_ranks)
      : std::runtime_error(message), status_(status), known_to_(known_to) {}
  ExitStatus status() const noexcept { return status_; }
  KnownTo known_to() const noexcept { return known_to_; }
  /// The one rank where it went wrong, in the communicator or grid of the call. Negative if that was every
  /// rank, or is not known.
  int rank() const noexcept { return rank_; }
  void set_rank(int rank) noexcept { rank_ = rank; }

 private:
  ExitStatus status_;
  KnownTo known_to_;
  int rank_ = -1;
};

/// An argument that no correct program passes: a negative size, an unknown name, a tolerance below zero.
class GRIDLOPS_EXPORT UsageError : public Error {
 public:
  explicit UsageError(const std::string& message, KnownTo known_to = KnownTo::all_ranks)
      : Error(ExitStatus::usage, message, known_to) {}
};

/// Operands whose shapes, layouts or grids do not fit together. Thrown before any communication.
class GRIDLOPS_EXPORT ShapeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// An input file that is missing, damaged, or lacks what is needed.
class GRIDLOPS_EXPORT InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(ExitStatus::bad_input, message) {}
};

/// An output file that could not be written. A file that had its name before is unchanged; no new one is
/// left.
class GRIDLOPS_EXPORT OutputError : public Error {
 public:
  explicit OutputError(const std::string& message) : Error(ExitStatus::bad_output, message) {}
};

/// There is not enough memory for an array.
class GRIDLOPS_EXPORT OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message, KnownTo known_to = KnownTo::one_rank)
      : Error(ExitStatus::out_of_memory, message, known_to) {}
};

/// A call of a transport failed. Only the rank that saw the failure throws.
class GRIDLOPS_EXPORT CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message, KnownTo known_to = KnownTo::one_rank,
                              ExitStatus status = ExitStatus::internal)
      : Error(status, message, known_to) {}
};

/// A solver was asked to save its state and stop, and did; nothing is wrong.
class GRIDLOPS_EXPORT Suspended : public Error {
 public:
  explicit Suspended(const std::string& message) : Error(ExitStatus::try_again, message) {}
};

/// One of the types above, as a value.
struct ErrorType {
  const char* name;   ///< as in C++ and in Python
  ExitStatus status;  ///< of its errors, unless they say otherwise
  bool (*matches)(const Error&);
  /// Makes an error that all ranks throw; only the type Error uses status.
  std::exception_ptr (*make)(ExitStatus status, const std::string& message, int rank);
};

/// The only list of the types above; a type comes before its base. Ranks tell each other of an error by its
/// type's position in the list.
GRIDLOPS_EXPORT const std::vector<ErrorType>& error_types();
/// The first type in the list that matches.
GRIDLOPS_EXPORT const ErrorType& type_of(const Error& error);

}  // namespace gridlops
