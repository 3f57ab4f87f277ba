// SPDX-License-Identifier: BSD-3-Clause
// Reads HDF5 files of which some bits are wrong, or that are cut off: damaged_hdf5 FOLDER STEP [CASE].
// Damage number CASE is every bit in turn, then every length, then random damage; only every STEP-th one is
// tried. Each must be refused by an InputError, or read. A child process tries many, so that a crash costs
// one of them.
#include <hdf5.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "hdf5/element_type.hpp"
#include "hdf5/handles.hpp"
#include "io/formats/hdf5.hpp"

namespace {

using namespace gridlops;
using h5::Handle;

const std::vector<std::string> datasets{"plain", "g/compact", "g/chunks", "pairs", "turned"};

void make(const Handle& file, const std::string& name, ScalarType type, bool chunks, bool compact,
          hid_t stored) {
  const std::array<hsize_t, 2> sizes{4, 5}, chunk{3, 2};
  const Handle space(H5Screate_simple(2, sizes.data(), nullptr), H5Sclose),
      how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), in_memory = h5::stored_type(type);
  H5Pset_create_intermediate_group(links.id(), 1);
  if (compact) H5Pset_layout(how.id(), H5D_COMPACT);
  if (chunks) {
    H5Pset_chunk(how.id(), 2, chunk.data());
    H5Pset_shuffle(how.id());
    H5Pset_deflate(how.id(), 1);
  }
  const Handle dataset(H5Dcreate2(file.id(), name.c_str(), stored < 0 ? in_memory.id() : stored, space.id(),
                                  links.id(), how.id(), H5P_DEFAULT),
                       H5Dclose);
  const std::vector<double> values(40, 3);
  H5Dwrite(dataset.id(), in_memory.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  if (!compact) return;
  const Handle one(H5Screate(H5S_SCALAR), H5Sclose), text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.id(), 6);
  const Handle attribute(
      H5Acreate2(dataset.id(), "MATLAB_class", text.id(), one.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  H5Awrite(attribute.id(), text.id(), "double");
}

std::string sound_file(const std::string& path) {
  {
    const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    make(file, datasets[0], ScalarType::f64, false, false, -1);
    make(file, datasets[1], ScalarType::f64, false, true, -1);
    make(file, datasets[2], ScalarType::f32, true, false, -1);
    make(file, datasets[3], ScalarType::c64, false, false, -1);
    make(file, datasets[4], ScalarType::f64, true, false, H5T_STD_I16BE);
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t cases(const std::string& sound) { return 8 * sound.size() + sound.size() + 100000; }

std::string damaged(std::string data, std::size_t number) {
  const std::size_t bits = 8 * data.size();
  const auto flip = [&](std::size_t bit) {
    data[bit / 8] = static_cast<char>(data[bit / 8] ^ static_cast<char>(1U << bit % 8));
  };
  if (number < bits) {
    flip(number);
  } else if (number < bits + data.size()) {
    data.resize(number - bits);
  } else {
    for (Index k = 0; k < 2 + static_cast<Index>(number % 5); ++k)
      flip(static_cast<std::size_t>(counter_uniform(7, static_cast<Index>(number), k) *
                                    static_cast<double>(bits)) %
           bits);
  }
  return data;
}

/// Whether all datasets were read.
bool try_all(const std::string& path, const std::string& data) {
  std::ofstream(path, std::ios::binary) << data;
  bool all = true;
  for (const std::string& name : datasets) {
    try {
      const auto dataset = open_dataset(parse_array_name(path + ":" + name));
      const ArrayHeader& header = dataset->header();
      Box box;
      Index elements = 1;
      for (const Index size : header.sizes) {
        box.push_back({0, size});
        elements *= size;
      }
      if (elements == 0 || elements > 100000) continue;
      std::vector<std::complex<double>> values(static_cast<std::size_t>(elements));
      dataset->read(box, values.data(), header.fortran_order ? box.front().size : box.back().size);
    } catch (const InputError&) {
      all = false;
    } catch (const std::bad_alloc&) {
      all = false;
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string path = std::string(argv[1]) + "/damaged-" + std::to_string(getpid()) + ".h5";
  const std::string sound = sound_file(path);
  const auto step = static_cast<std::size_t>(std::atoll(argv[2]));
  if (argc > 3) return try_all(path, damaged(sound, static_cast<std::size_t>(std::atoll(argv[3])))) ? 0 : 1;
  if (!try_all(path, sound)) return 1;
  auto* const counts = static_cast<std::size_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::size_t& next = counts[0];
  std::size_t& read = counts[1];
  std::size_t crashes = 0;
  while (next < cases(sound)) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      for (const std::size_t end = next + 2000 * step; next < std::min(end, cases(sound)); next += step)
        if (try_all(path, damaged(sound, next))) ++read;
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++crashes;
    std::cout << "case " << next << ": " << (WIFSIGNALED(status) ? "signal " : "status ")
              << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << '\n';
    next += step;
  }
  std::cout << cases(sound) / step << " files of " << sound.size() << " bytes, " << read << " read, "
            << crashes << " crashes\n";
  unlink(path.c_str());
  return 500 * crashes > cases(sound) / step ? 1 : 0;
}
