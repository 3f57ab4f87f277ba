// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/ridge.hpp"

namespace gridlops::program {

/// A hash of all elements of a matrix and their places, the same for every layout in which each element is on
/// one rank (collective over the grid).
template <Scalar T>
std::uint64_t hash_of_elements(const ConstDistMatrix<T>& A);

/// The batches of targets that a run of `ridge` has finished, in a directory: manifest.json, which says of
/// which problem they are, and for each batch its coefficients and, written last, its figures. A job that is
/// killed leaves complete batches only.
class SavedRidge {
 public:
  /// checkpoint, restart: the directories, or empty. problem: what a restart must have in common with its
  /// run. Collective over world. Throws InputError on all ranks if there is nothing to go on with, or of
  /// another problem; OutputError if `checkpoint` holds batches that this run does not go on with.
  SavedRidge(Communicator& world, std::string checkpoint, std::string restart,
             const nlohmann::ordered_json& problem);

  /// The width of the batches of the run that this one goes on with; else this one.
  Index batch(Index chosen) const { return batch_ > 0 ? batch_ : chosen; }
  /// Whether begin() needs a hash of A.
  bool is_used() const { return !checkpoint_.empty() || !restart_.empty(); }
  /// Compares the hash of A with that of the run, or notes it with the width (collective over the grid).
  /// Throws InputError or OutputError, as the constructor does.
  void begin(const std::shared_ptr<const ProcessGrid>& grid, const std::string& hash_of_A, Index batch);

  /// Reads the columns of a batch, if it was saved, into report and X (collective). It has as many scores as
  /// `report` has room for. pass: "scored" or "fitted". A batch of another run counts as none. Throws
  /// InputError if an element of these columns of B has changed.
  template <Scalar T>
  bool load(const std::string& pass, Range columns, const std::string& rhs, const MatrixHeader& header,
            RidgeReport& report, DistMatrix<T>* X) const;
  /// Saves a batch (collective). If it cannot be, rank 0 prints a warning.
  template <Scalar T>
  void save(const std::string& pass, Range columns, const ConstDistMatrix<T>& B, const RidgeReport& report,
            const DistMatrix<T>* X) const;

 private:
  void refuse_another_run() const;
  template <Scalar T>
  void write(const std::string& pass, Range columns, const ConstDistMatrix<T>& B, const RidgeReport& report,
             const DistMatrix<T>* X) const;

  Communicator& world_;
  std::string checkpoint_, restart_;
  nlohmann::ordered_json problem_, found_;
  Index batch_ = 0;
  double of_this_run_ = 0;  ///< a hash that every batch has
  std::shared_ptr<const ProcessGrid> grid_;
  std::shared_ptr<const void> lock_;  ///< on rank 0: no other run saves batches in `checkpoint`
};

}  // namespace gridlops::program
