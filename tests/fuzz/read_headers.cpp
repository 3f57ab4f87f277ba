// SPDX-License-Identifier: BSD-3-Clause
// Reads files, each in a line of standard input in hexadecimal digits, and says what their headers mean:
// where the data begin, the type, whether the order is Fortran's, and the sizes; or "refused".
#include <iostream>

#include "gridlops/base/error.hpp"
#include "io/formats/npy_header.hpp"

int main() {
  using namespace gridlops;
  for (std::string line; std::getline(std::cin, line);) {
    std::string file;
    for (std::size_t k = 0; k + 1 < line.size(); k += 2)
      file += static_cast<char>(std::stoi(line.substr(k, 2), nullptr, 16));
    try {
      const ArrayHeader header = parse_npy_array_header(file, static_cast<Index>(file.size()), "file");
      std::cout << header.data_offset << ' ' << name_of(header.type) << ' ' << header.fortran_order;
      for (const Index size : header.sizes) std::cout << ' ' << size;
      std::cout << '\n';
    } catch (const InputError&) {
      std::cout << "refused\n";
    }
  }
}
