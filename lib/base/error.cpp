// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/base/error.hpp"

#include <algorithm>
#include <type_traits>

namespace gridlops {

namespace {

template <class E>
std::exception_ptr make(ExitStatus status, const std::string& message, int rank) {
  const auto of_rank = [rank](E error) {
    error.set_rank(rank);
    return std::make_exception_ptr(error);
  };
  if constexpr (std::is_same_v<E, Error>) {
    return of_rank(Error(status, message));
  } else if constexpr (std::is_constructible_v<E, std::string, KnownTo>) {
    return of_rank(E(message, KnownTo::all_ranks));
  } else {
    return of_rank(E(message));
  }
}

template <class E>
bool matches(const Error& error) {
  return std::is_same_v<E, Error> || dynamic_cast<const E*>(&error) != nullptr;
}

template <class E>
ErrorType type(const char* name, ExitStatus status) {
  return {name, status, matches<E>, make<E>};
}

}  // namespace

const std::vector<ErrorType>& error_types() {
  static const std::vector<ErrorType> types{
      type<ShapeError>("ShapeError", ExitStatus::usage),
      type<UsageError>("UsageError", ExitStatus::usage),
      type<InputError>("InputError", ExitStatus::bad_input),
      type<OutputError>("OutputError", ExitStatus::bad_output),
      type<OutOfMemory>("OutOfMemory", ExitStatus::out_of_memory),
      type<CommunicationError>("CommunicationError", ExitStatus::internal),
      type<Suspended>("Suspended", ExitStatus::try_again),
      type<Error>("Error", ExitStatus::internal),
  };
  return types;
}

const ErrorType& type_of(const Error& error) {
  return *std::find_if(error_types().begin(), error_types().end(),
                       [&](const ErrorType& type) { return type.matches(error); });
}

}  // namespace gridlops
