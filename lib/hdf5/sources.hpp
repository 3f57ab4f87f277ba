// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "hdf5/handles.hpp"

namespace gridlops::h5 {

/// The other files in which the elements of a dataset are. HDF5 reads fill values for what it does not find.
class Sources {
 public:
  /// Throws InputError, with `name`, if the dataset has external storage in another folder than its own file
  /// or HDF5_EXTFILE_PREFIX, in files that are too short, or virtual sources of unknown number. Such storage
  /// could be any file of this user, and its bytes any numbers; virtual sources must be datasets themselves.
  ///
  /// above: the files of datasets that have this one as a source.
  Sources(hid_t dataset, hid_t properties, std::string name, std::vector<std::string> above = {});

  /// Throws InputError unless each virtual source that has some of the chosen elements has all that are
  /// mapped to it, and they have theirs.
  void require_complete(hid_t chosen) const;

 private:
  struct Mapping {
    std::string file, dataset;
    Handle to, from;  ///< which elements here, and there
    bool is_unlimited = false;
  };

  void require_source(const Mapping& mapping) const;

  std::string name_;
  std::vector<std::string> files_;        ///< those above, then its own
  mutable std::vector<Mapping> unknown_;  ///< those that are not yet known to be complete
};

}  // namespace gridlops::h5
