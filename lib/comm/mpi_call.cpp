// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi_call.hpp"

#include <cstring>
#include <string>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

namespace {

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return message("MPI error ", code);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

void MpiGroup::check(int code, const char* call, Index count) const {
  if (code == MPI_SUCCESS) return;
  throw CommunicationError(message(call, " of ", count, " elements failed on rank ", rank, " of ", size, ": ",
                                   mpi_error_text(code),
                                   "; the other ranks may wait for ever, so the job must end"));
}

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::byte:
      return MPI_BYTE;
    case ElementType::i32:
      return MPI_INT32_T;
    case ElementType::i64:
      return MPI_INT64_T;
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      break;
  }
  return MPI_DOUBLE;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      break;
  }
  return MPI_MAX;
}

void copy(const ConstElements& from, const Elements& to) {
  const Index bytes = std::min(from.bytes(), to.bytes());
  if (bytes > 0 && from.data != to.data) std::memcpy(to.data, from.data, static_cast<std::size_t>(bytes));
}

}  // namespace gridlops
