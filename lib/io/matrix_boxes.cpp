// SPDX-License-Identifier: BSD-3-Clause
#include "io/matrix_boxes.hpp"

#include <memory>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/formats/hdf5.hpp"

namespace gridlops {

MatrixBoxes boxes_of(const std::string& name, const MatrixHeader& header, ScalarType type) {
  require<UsageError>(header.type == type, name, ": has elements of type ", name_of(header.type), ", not ",
                      name_of(type), "; they cannot be read in place");
  require<UsageError>(!header.fortran_order, name, ": has one column after the other; only rows can be read ",
                      "in place");
  const ArrayName place = parse_array_name(name);
  MatrixBoxes boxes{place.file, header.rows, header.cols, header.cols, {header.data_offset}};
  if (header.data_offset < 0) {
    const std::unique_ptr<Dataset> dataset = open_dataset(place);
    boxes.offsets = dataset->chunk_offsets();
    boxes.rows = dataset->chunks()[0].size;
    boxes.cols = header.dimensions == 2 ? dataset->chunks()[1].size : 1;
  }
  const Index alignment = with_scalar_type(type, []<Scalar T>() { return static_cast<Index>(alignof(T)); });
  for (const Index offset : boxes.offsets)
    require<UsageError>(offset % alignment == 0, name, ": has elements at byte ", offset,
                        ", where the processor has none; they cannot be read in place");
  return boxes;
}

}  // namespace gridlops
