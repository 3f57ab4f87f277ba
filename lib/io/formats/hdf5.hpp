// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/dist/dims.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/formats/array_name.hpp"
#include "io/tiles.hpp"

namespace gridlops {

// The functions that this library needs from HDF5. lib/hdf5 implements it by the HDF5 library, and
// lib/no_hdf5 throws. Nothing here communicates: HDF5 knows nothing of the other ranks, so that none can wait
// in it for one that failed.

/// A dataset, or a part of it, that one rank reads.
/// Reasons: docs/decisions/0046-hdf5.md.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const ArrayHeader& header() const { return header_; }
  /// The chunks that each dimension of the header is cut into.
  const std::vector<Cells>& chunks() const { return chunks_; }

  /// Reads a box, not empty, of elements of header().type. The dimension that is contiguous in the file is
  /// contiguous in memory, too. The lines along it begin `stride` elements one after the other. Throws
  /// InputError.
  virtual void read(const Box& box, void* to, Index stride) const = 0;

  /// Where each chunk begins in the file, in C order of the chunks, if elements lie in them as in memory.
  /// Throws UsageError, with the reason, if they do not, and InputError.
  virtual std::vector<Index> chunk_offsets() const = 0;

 protected:
  Dataset() = default;

  ArrayHeader header_;
  std::vector<Cells> chunks_;
};

/// Opens it, and checks that this library can read its elements. Throws InputError.
std::unique_ptr<Dataset> open_dataset(const ArrayName& name);

/// Makes room for a dataset in a file, which is empty, or an HDF5 file in which a dataset of that name is
/// replaced. Returns the number of bytes before its first element. `like` and the name are for attributes and
/// messages. Throws OutputError.
Index make_dataset(const std::string& file, const ArrayName& name, const ArrayHeader& header,
                   const ArrayName& like);

/// Throws OutputError if the file of this name exists and cannot get such a dataset.
void check_output_dataset(const ArrayName& name);

}  // namespace gridlops
