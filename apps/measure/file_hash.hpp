// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops::program {

/// The XXH3 hash (64 bits) of all bytes of a file, in 16 hexadecimal digits.
std::string hash_of_file(const std::string& path);

}  // namespace gridlops::program
