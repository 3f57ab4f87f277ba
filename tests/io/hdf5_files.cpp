// SPDX-License-Identifier: BSD-3-Clause
// HDF5 files around a dataset: what else a file has, attributes, reading in place, damage, full disks, locks.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"
#include "io/hdf5_datasets.hpp"
#include "io/matrix_boxes.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

DistMatrix<double> some_matrix(const GridPtr& grid, Index rows = 20) {
  DistMatrix<double> A(grid, row_blocks(*grid, rows, 12));
  A.fill(element<double>);
  return A;
}

/// An attribute with one text of any length.
void give_long_text(const Handle& object, const char* name, const char* text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  const Handle attribute(H5Acreate2(object.id(), name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  H5Awrite(attribute.id(), type.id(), &text);
}

}  // namespace

TEST_CASE("A file keeps what it has, and a dataset is replaced", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  const GridPtr grid = square_grid();
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {"", {2, 2}, true});
  for (const Index rows : {20, 20, 31, 5}) {
    write_matrix(file + ":/results/X", some_matrix(grid, rows));
    write_matrix(file + ":/results/more/Y", some_matrix(grid, 4));
    world().barrier();
    if (world().rank() == 0) {
      CHECK(whole<double>(file, "/g/A").second == by_rows<double>({7, 3}));
      CHECK(whole<double>(file, "/results/X").second == by_rows<double>({rows, 12}));
      CHECK(whole<double>(file, "/results/more/Y").second == by_rows<double>({4, 12}));
      CHECK(folder.names() == std::vector<std::string>{"A.h5"});
    }
    world().barrier();
  }
  // A dataset of the same size takes the same place: a file does not grow by being written to.
  const auto size = InputFile(file).size();
  world().barrier();
  for (int k = 0; k < 3; ++k) write_matrix(file + ":/results/X", some_matrix(grid, 5));
  CHECK(InputFile(file).size() == size);
}

TEST_CASE("A dataset gets the attributes of another one, but those of its storage", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), other = folder.file("B.h5");
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
  if (world().rank() == 0) {
    const Handle id = open_file(file, H5F_ACC_RDWR), dataset = open_dataset(id, "/g/A");
    for (const char* name : {"units", "MATLAB_class", "CLASS"}) give_attribute(dataset, name, "m/s");
    give_long_text(dataset, "comment", "of any length");
  }
  world().barrier();
  const GridPtr grid = square_grid();
  for (const std::string& target : {other, file}) {
    write_matrix(target + ":/X", some_matrix(grid), 2, file + ":/g/A");
    world().barrier();
    if (world().rank() == 0) {
      const Handle id = open_file(target, H5F_ACC_RDONLY), dataset = open_dataset(id, "/X");
      CHECK(H5Aexists(dataset.id(), "units") > 0);
      CHECK(H5Aexists(dataset.id(), "MATLAB_class") == 0);
      CHECK(H5Aexists(dataset.id(), "CLASS") == 0);
      const Handle attribute(H5Aopen(dataset.id(), "comment", H5P_DEFAULT), H5Aclose);
      const Handle type(H5Aget_type(attribute.id()), H5Tclose);
      char* text = nullptr;
      CHECK(H5Aread(attribute.id(), type.id(), &text) >= 0);
      CHECK((text != nullptr && std::string(text) == "of any length"));
      H5free_memory(text);
    }
    world().barrier();
  }
  // A file without attributes is no reason to fail.
  write_matrix(other + ":/X", some_matrix(grid), 2, folder.file("A.npy"));
  write_matrix(folder.file("X.npy"), some_matrix(grid), 2, file + ":/g/A");
}

TEST_CASE("What cannot be read or written is an error on all ranks", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
  if (world().rank() == 0) {
    const Handle id = open_file(file, H5F_ACC_RDWR);
    H5Lcreate_soft("/g/A", id.id(), "link", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/g", id.id(), "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    std::ofstream(folder.file("text.h5")) << "no HDF5";
  }
  world().barrier();
  const auto refusal = [](const std::string& name) {
    return message_of<InputError>([&] { read_matrix_header(world(), name); });
  };
  CHECK(
      contains(refusal(folder.file("missing.h5") + ":/A"), "missing.h5: cannot open the file: No such file"));
  CHECK(contains(refusal(folder.file("text.h5") + ":/A"), "text.h5: is no HDF5 file"));
  CHECK(contains(refusal(file + ":/B"), "there is no dataset /B in " + file +
                                            ", whose first level is this: it "
                                            "has elsewhere, g, link"));
  CHECK(contains(refusal(file + ":/g"), "is a group, and not a dataset: it has A; name a dataset, such as"));
  CHECK(contains(refusal(file), "is a group, and not a dataset: it has elsewhere, g, link"));
  CHECK(contains(refusal(file + ":/elsewhere/A"), "there is no dataset /elsewhere/A"));
  CHECK(read_matrix_header(world(), file + ":/link").rows == 7);

  const GridPtr grid = square_grid();
  const DistMatrix<double> X = some_matrix(grid);
  const std::string before = contents(file);
  const auto not_written = [&](const std::string& name) {
    return message_of<OutputError>([&] { write_matrix(name, X); });
  };
  const std::vector<std::string> files = folder.names();
  if (grid->is_member()) {
    CHECK(contains(not_written(file + ":/g"), "is a group, and will not be replaced"));
    CHECK(contains(not_written(file + ":/g/A/x"), "is no group, and cannot hold a dataset"));
    CHECK(contains(not_written(file + ":/link"), "is a link to another name"));
    CHECK(contains(not_written(file + ":/elsewhere/x"), "is a link to another name"));
    CHECK(contains(not_written(folder.file("text.h5") + ":/X"), "is no HDF5 file"));
    CHECK(contains(not_written(folder.file("none/B.h5") + ":/X"), "No such file or directory"));
  } else {
    for (int k = 0; k < 6; ++k) not_written(file + ":/g");
  }
  for (const std::string& name : {file, file + ":/x@0", folder.file("x.mat") + ":/x"})
    CHECK(!message_of<UsageError>([&] { write_matrix(name, X); }).empty());
  world().barrier();
  CHECK(folder.names() == files);
  CHECK(contents(file) == before);
}

TEMPLATE_LIST_TEST_CASE("Chunks lie in a file where a dataset says", "[hdf5]", Scalars) {
  using T = TestType;
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  const Size size{23, 14};
  const std::vector<T> data = by_rows<T>(size);
  for (const auto& [chunk_rows, chunk_cols] :
       std::vector<std::pair<hsize_t, hsize_t>>{{5, 4}, {1, 14}, {23, 14}, {40, 3}, {2, 20}}) {
    CAPTURE(chunk_rows, chunk_cols);
    create(file, shape_of(size), data, {"chunks", {chunk_rows, chunk_cols}});
    const MatrixHeader header = read_matrix_header(world(), name);
    const MatrixBoxes boxes = boxes_of(name, header, scalar_type_of<T>);
    CHECK(boxes.rows == static_cast<Index>(chunk_rows));
    CHECK(boxes.cols == static_cast<Index>(chunk_cols));
    std::ifstream bytes(file, std::ios::binary);
    bool is_same = true;
    for (Index i = 0; i < size.rows; ++i)
      for (Index j = 0; j < size.cols; ++j) {
        const Index box = i / boxes.rows * boxes.across() + j / boxes.cols;
        bytes.seekg(boxes.offsets.at(static_cast<std::size_t>(box)) +
                    (i % boxes.rows * boxes.cols + j % boxes.cols) * Index{sizeof(T)});
        T found{};
        bytes.read(reinterpret_cast<char*>(&found), sizeof found);
        is_same = is_same && found == element<T>(i, j);
      }
    CHECK(is_same);
    world().barrier();
  }
  const auto refusal = [&](const std::string& of, const Kept& kept) {
    create(file, shape_of(size), data, kept);
    const MatrixHeader header = read_matrix_header(world(), of);
    return message_of<UsageError>([&] { boxes_of(of, header, header.type); });
  };
  CHECK(contains(refusal(name, {"compressed", {5, 4}, true}), "is compressed"));
  CHECK(contains(refusal(name, {"of MATLAB", {5, 4}, false, -1, true}), "one column after the other"));
  CHECK(contains(refusal(name + "@2:9", {"chunks", {5, 4}}), "a part of a dataset"));
}

TEST_CASE("Chunks that were never written are not read in place", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  create<double>(file, {23, 14}, {}, {"chunks", {5, 4}});
  const MatrixHeader header = read_matrix_header(world(), name);
  CHECK(contains(message_of<UsageError>([&] { boxes_of(name, header, header.type); }), "never written"));
}

TEST_CASE("A dataset that ends early is an error on all ranks", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5"), name = file + ":/g/A";
  for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{}, {8, 8}}) {
    create<double>(file, {64, 64}, by_rows<double>({64, 64}), {"", chunk});
    const MatrixHeader header = read_matrix_header(world(), name);
    world().barrier();
    // The file is cut after the header was read.
    if (world().rank() == 0) std::filesystem::resize_file(file, std::filesystem::file_size(file) - 500);
    world().barrier();
    CHECK(contains(message_of<InputError>([&] { read_matrix_header(world(), name); }), file));
    for (const GridPtr& grid : all_grids(make_host_backend)) {
      DistMatrix<double> X(grid, row_blocks(*grid, 64, 64));
      CHECK(message_of<InputError>([&] { read_matrix(name, header, X); }).empty() != grid->is_member());
    }
  }
}

TEST_CASE("A disk that is full for any rank leaves the old HDF5 file", "[hdf5]") {
  const ScratchFolder folder;
  const std::string file = folder.file("A.h5");
  for (const GridPtr& grid : all_grids(make_host_backend)) {
    const DistMatrix<double> X = some_matrix(grid);
    for (const bool old_file : {false, true}) {
      if (world().rank() == 0) std::filesystem::remove(file);
      if (old_file) create<double>(file, {7, 3}, by_rows<double>({7, 3}), {""});
      const std::string before = contents(file);
      const int members = grid->shape().size();
      for (const int poor_rank : {members - 1, 0}) {
        std::string text;
        {
          const FileSizeLimit limit(world().rank() == poor_rank ? rlim_t{128} : RLIM_INFINITY);
          text = message_of<OutputError>([&] { write_matrix(file + ":/X", X); });
        }
        CAPTURE(text, poor_rank);
        CHECK(text.empty() != grid->is_member());
        CHECK(contains(text, "File too large") == grid->is_member());
        world().barrier();
        if (world().rank() == 0) {
          CHECK(folder.names() == (old_file ? std::vector<std::string>{"A.h5"} : std::vector<std::string>{}));
          if (old_file) CHECK(contents(file) == before);
        }
        world().barrier();
      }
    }
  }
}

TEST_CASE("Jobs that write to one file wait for each other", "[hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder.file("A.h5.lock");
  if (world().rank() != 0) return;
  std::atomic<bool> is_held = false, is_given_up = false;
  std::thread other([&] {
    const LockFile held(path, "write there");
    is_held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    is_given_up = true;
  });
  while (!is_held) std::this_thread::yield();
  CHECK_THROWS_AS(LockFile(path, "write there"), OutputError);
  const LockFile mine(path, "write there", std::chrono::seconds(20));
  CHECK(is_given_up);
  other.join();
}
