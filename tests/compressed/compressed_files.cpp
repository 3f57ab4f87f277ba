// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/npy_files.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 90, n = 67;

template <Scalar T>
CompressionOptions options_for(const std::string& directory = {}) {
  return {.tolerance = 1e-3,
          .tile = 24,
          .row_order = Waves<T>::order(m),
          .col_order = Waves<T>::order(n),
          .directory = directory};
}

template <Scalar T>
bool equal(const Whole<T>& a, const Whole<T>& b) {
  return a.rows == b.rows && a.cols == b.cols && a.values == b.values;
}

/// Changes the last byte of a file; again, and it is what it was (collective over world()).
void flip_last_bit(const std::filesystem::path& path) {
  world().barrier();
  if (world().rank() == 0) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get() ^ 1);
    file.seekp(-1, std::ios::end);
    file.put(last);
  }
  world().barrier();
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A matrix in a file is compressed as one in memory is", "[compressed_files]",
                        Scalars) {
  using T = TestType;
  using Stored = std::conditional_t<is_complex<T>, std::complex<float>, float>;
  for (const GridPtr& grid : all_grids()) {
    const ScratchFolder folder;
    const auto element = [](Index i, Index j) { return static_cast<T>(Waves<Stored>{m, n}(i, j)); };
    const DistMatrix<T> A = placed<T>(grid, m, n, element);
    const Whole<T> in_memory = elements_of(*compress(A, options_for<T>()));
    write_matrix(folder.file("columns.npy"), A);
    write_matrix(folder.file("narrow.npy"), placed<Stored>(grid, m, n, Waves<Stored>{m, n}));
    write_array(folder.file("rows.npy"), Dims({Partition::balanced(m, 1), Partition::balanced(n, 1)}),
                filled(grid, {Cut::uncut(m * n), Cut::uncut(1)},
                       [&](Index k, Index) { return element(k / n, k % n); }));
    for (const char* name : {"columns.npy", "narrow.npy", "rows.npy"}) {
      INFO(describe(*grid) << ": " << name);
      const std::string file = folder.file(name);
      const MatrixHeader header = read_matrix_header(world(), file);
      CHECK(header.fortran_order == (std::string(name) != "rows.npy"));
      const auto compressed = compress<T>(grid, file, header, options_for<T>());
      CHECK(equal(elements_of(*compressed), in_memory));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A saved compressed matrix is the same on every grid", "[compressed_files]",
                        Scalars) {
  using T = TestType;
  for (const GridPtr& writer : all_grids()) {
    const ScratchFolder folder;
    const std::string saved = folder.file("saved");
    // Waves, beside random numbers and zeros: tiles of low rank, dense and empty ones.
    const DistMatrix<T> A = placed<T>(writer, m, n, [](Index i, Index j) {
      return j < 30 ? Waves<T>{m, n}(i, j) : j < 45 ? T(10) * counter_random<T>(4, i, j) : T(0);
    });
    const auto written =
        compress(A, {.tolerance = 1e-3, .tile = 14, .row_order = Waves<T>::order(m), .directory = saved});
    const Whole<T> elements = elements_of(*written);
    const CompressionReport& said = written->report();
    world().barrier();
    const MatrixHeader header = read_compressed_header(world(), saved);
    CHECK((header.type == scalar_type_of<T> && header.rows == m && header.cols == n));
    const SavedCompressed known(world(), saved);
    CHECK(known.header() == header);
    if (writer->is_member())
      CHECK((known.report().norm == said.norm && known.report().error == said.error &&
             known.report().bytes > 0 && known.report().bytes < said.bytes));
    for (const GridPtr& reader : all_grids()) {
      INFO("written " << describe(*writer) << ", read " << describe(*reader));
      const auto read = read_compressed<T>(reader, saved, header);
      const Whole<T> found = elements_of(*read);
      if (reader->is_member()) {
        for (const Index columns : {0, 1, 5}) {
          const Partition partition = read->domain().layout(columns).cols.partition;
          CHECK(known.bytes_of_rank(reader->shape(), reader->my_row(), reader->my_col(), columns) ==
                read->kept_bytes(Partition()) + read->scratch_bytes(ProductKind::forward, partition));
        }
      }
      if (!reader->is_member() || !writer->is_member()) continue;
      double norm = 0;
      for (const T value : elements.values) norm += std::norm(value);
      double difference = 0;
      for (std::size_t k = 0; k < elements.values.size(); ++k)
        difference += std::norm(elements.values[k] - found.values[k]);
      CHECK(std::sqrt(difference) <= 10 * epsilon_of<T> * std::sqrt(norm));
      const CompressionReport& report = read->report();
      CHECK((report.norm == said.norm && report.error == said.error && report.tiles == said.tiles));
      CHECK((report.dense_tiles == said.dense_tiles && report.empty_tiles == said.empty_tiles));
      if (reader->shape() == writer->shape()) CHECK(report.bytes == said.bytes);
    }
  }
}

TEST_CASE("Damaged files of a compressed matrix are refused, and others are not replaced",
          "[compressed_files]") {
  using T = double;
  const GridPtr grid = all_grids().front();
  const ScratchFolder folder;
  const std::string saved = folder.file("saved");
  const DistMatrix<T> A = placed<T>(grid, m, n, Waves<T>{m, n});
  const auto options = options_for<T>(saved);
  CHECK(contains(message_of<InputError>([&] { read_compressed_header(world(), saved); }),
                 "there is no manifest.json"));
  compress(A, options);
  CHECK_THROWS_AS(compress(A, options), OutputError);
  const MatrixHeader header = read_compressed_header(world(), saved);
  CHECK_THROWS_AS(read_compressed<float>(grid, saved, header), ShapeError);
  MatrixHeader other = header;
  other.rows = m + 1;
  CHECK(contains(message_of<InputError>([&] { read_compressed<T>(grid, saved, other); }), "another matrix"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(saved)) {
    if (entry.path().extension() != ".npy" || entry.file_size() <= 128) continue;
    INFO(entry.path().filename().string());
    flip_last_bit(entry.path());
    CHECK_THROWS_AS(read_compressed<T>(grid, saved, header), InputError);
    flip_last_bit(entry.path());
  }
  read_compressed<T>(grid, saved, header);
  CHECK(SavedCompressed(world(), saved).header() == header);
  for (const char* table : {"figures", "tiles", "rows", "columns", "row-tiles", "column-tiles"}) {
    INFO(table);
    const std::filesystem::path file = folder.file("saved/generation-1/" + std::string(table) + ".npy");
    flip_last_bit(file);
    CHECK_THROWS_AS(SavedCompressed(world(), saved), InputError);
    flip_last_bit(file);
  }
  CHECK(contains(message_of<InputError>([&] { SavedCompressed(world(), folder.file("none")); }),
                 "there is no manifest.json"));
}
