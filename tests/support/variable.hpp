// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>

namespace gridlops::testing {

/// A variable of the environment, on this rank and while this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace gridlops::testing
