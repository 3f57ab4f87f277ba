// SPDX-License-Identifier: BSD-3-Clause
// Checks that device memory reaches MPI only where MPI says and shows that it takes it.
// GRIDLOPS_EMULATION_MPI says what the emulation's MPI does.
#include "comm/communicator_contract.hpp"
#include "emulation/control.hpp"
#include "gridlops/comm/gpu.hpp"
#include "support/programs/mpi_main.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using gridlops::testing::Operand;
using gridlops::testing::Subject;
using gridlops::testing::Variable;
using gridlops::testing::world;

namespace {

Subject over_mpi() {
  const std::shared_ptr<Backend> backend = make_gpu_backend(0);
  return {make_gpu_communicator(world(), backend, "mpi"), backend};
}

long addresses_given() { return emulation::ledger().device_addresses_to_mpi; }

/// How often MPI gets device memory in operations that it could do on the device.
long addresses_in_use(const Subject& subject) {
  const long before = addresses_given();
  Operand<double> one(subject, testing::values<double>(world().rank(), 5));
  Operand<double> all(subject, testing::untouched<double>(5 * world().size()));
  subject.comm->broadcast(one, 0);
  subject.comm->all_gather(one, all);
  CHECK(one.values() == testing::values<double>(0, 5));
  return addresses_given() - before;
}

}  // namespace

TEST_CASE("An MPI that does not say that it takes device memory never gets any") {
  const Subject subject = over_mpi();
  CHECK_FALSE(mpi_claims_device_memory());
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
  CHECK(addresses_given() == 0);
}

TEST_CASE("An MPI that takes device memory gets it, and nothing crosses to the host") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", "aware");
  const Subject subject = over_mpi();
  CHECK(mpi_claims_device_memory());
  CHECK(subject.comm->transport() == "mpi-direct");
  CHECK(subject.comm->split(0, 0)->transport() == "mpi-direct");
  if (world().size() == 1) return;
  Operand<double> one(subject, testing::values<double>(world().rank(), 5));
  Operand<double> all(subject, testing::untouched<double>(5 * world().size()));
  const auto before = emulation::ledger();
  subject.comm->broadcast(one, 0);
  subject.comm->all_gather(one, all);
  const auto after = emulation::ledger();
  CHECK(after.device_addresses_to_mpi == before.device_addresses_to_mpi + 2);
  CHECK(after.bytes_to_host == before.bytes_to_host);
  CHECK(after.bytes_to_device == before.bytes_to_device);
}

TEST_CASE("Where MPI takes device memory the contract holds") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", "aware");
  testing::check_communicator_contract(over_mpi);
}

TEST_CASE("An MPI that loses what it says it takes is found out, and gets no more") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", "boastful");
  const Subject subject = over_mpi();
  CHECK(mpi_claims_device_memory());
  if (world().size() == 1) return;
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
}

TEST_CASE("An MPI that refuses what it says it takes is found out, and gets no more") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", "refusing");
  const Subject subject = over_mpi();
  CHECK(mpi_claims_device_memory());
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
}

TEST_CASE("If one rank's MPI refuses device memory, none gets any") {
  const Variable ability("GRIDLOPS_EMULATION_MPI",
                         world().rank() == world().size() - 1 ? "refusing" : "aware");
  const Subject subject = over_mpi();
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
}

TEST_CASE("If one rank's MPI does not say that it takes device memory, none gets any") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", world().rank() == world().size() - 1 ? "plain" : "aware");
  const long before = addresses_given();
  const Subject subject = over_mpi();
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
  CHECK(addresses_given() == before);
}

TEST_CASE("The environment of one rank keeps device memory from MPI on all") {
  const Variable ability("GRIDLOPS_EMULATION_MPI", "aware");
  const Variable way("GRIDLOPS_DEVICE_MPI", world().rank() == 0 ? "staged" : "auto");
  const long before = addresses_given();
  const Subject subject = over_mpi();
  CHECK(subject.comm->transport() == "mpi-staged");
  CHECK(addresses_in_use(subject) == 0);
  CHECK(addresses_given() == before);
}
