// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "arguments.hpp"
#include "gridlops/communicator.hpp"
#include "gridlops/error.hpp"

namespace gridlops::program {

// All are collective over world, return rank 0's exit status there, and throw on all ranks alike; what one
// rank throws alone must end the job.

ExitStatus make_problem(Communicator& world, const MakeProblemArguments& arguments);
ExitStatus multiply(Communicator& world, const MultiplyArguments& arguments);
ExitStatus solve(Communicator& world, const SolveArguments& arguments);
ExitStatus info(Communicator& world);

}  // namespace gridlops::program
