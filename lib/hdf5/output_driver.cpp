// SPDX-License-Identifier: BSD-3-Clause
#include "hdf5/output_driver.hpp"

// Where HDF5 1.14 has what drivers need.
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

#include <exception>

namespace gridlops::h5 {

namespace {

/// Since 1.14 drivers have a version and a number of their own.
template <class Class>
void give_number(Class& driver) {
  if constexpr (requires { driver.version; }) {
    driver.version = 1;
    driver.value = 511;  // of those for tests and private use
  }
}

}  // namespace

/// The functions that HDF5 calls. Its handle of the file begins with its own data.
struct OutputDriver::Calls {
  struct File {
    H5FD_t hdf5{};
    OutputDriver* driver = nullptr;
    haddr_t allocated = 0, size = 0;
  };

  static File& of(H5FD_t* file) { return *reinterpret_cast<File*>(file); }
  static const File& of(const H5FD_t* file) { return *reinterpret_cast<const File*>(file); }

  /// Does it, and keeps the first failure.
  template <class Work>
  static herr_t keep_failure(H5FD_t* file, Work&& work) {
    try {
      work(*of(file).driver);
    } catch (...) {
      std::exception_ptr& first = of(file).driver->failure_;
      if (first == nullptr) first = std::current_exception();
    }
    return 0;
  }

  static H5FD_t* open(const char*, unsigned flags, hid_t access, haddr_t) {
    auto* const file = new File;
    file->driver = *static_cast<OutputDriver* const*>(H5Pget_driver_info(access));
    file->size = (flags & H5F_ACC_TRUNC) != 0 ? 0 : static_cast<haddr_t>(file->driver->read_.size());
    return &file->hdf5;
  }
  static herr_t close(H5FD_t* file) {
    delete &of(file);
    return 0;
  }
  static herr_t query(const H5FD_t*, unsigned long* features) {
    *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
  }
  static haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; }
  static herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).allocated = end;
    return 0;
  }
  static haddr_t get_size(const H5FD_t* file, H5FD_mem_t) { return of(file).size; }
  static herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t begin, std::size_t bytes, void* to) {
    try {
      of(file).driver->read_.read(to, static_cast<Index>(bytes), static_cast<Index>(begin));
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }
  static herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t begin, std::size_t bytes, const void* from) {
    of(file).size = std::max(of(file).size, begin + bytes);
    return keep_failure(file, [&](OutputDriver& driver) {
      driver.write_.write(from, static_cast<Index>(bytes), static_cast<Index>(begin));
    });
  }
  static herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
    if (of(file).size == of(file).allocated) return 0;
    of(file).size = of(file).allocated;
    return keep_failure(
        file, [&](OutputDriver& driver) { driver.write_.resize(static_cast<Index>(of(file).allocated)); });
  }

  /// The driver's number, which HDF5 gives it.
  static hid_t id() {
    static const H5FD_class_t driver = [] {
      H5FD_class_t calls{};
      give_number(calls);
      calls.name = "gridlops";
      calls.maxaddr = (haddr_t{1} << 62) - 1;
      calls.fc_degree = H5F_CLOSE_STRONG;
      calls.fapl_size = sizeof(OutputDriver*);
      calls.open = open;
      calls.close = close;
      calls.query = query;
      calls.get_eoa = get_allocated;
      calls.set_eoa = set_allocated;
      calls.get_eof = get_size;
      calls.read = read;
      calls.write = write;
      calls.truncate = truncate;
      return calls;
    }();
    static const hid_t number = H5FDregister(&driver);
    return number;
  }
};

OutputDriver::OutputDriver(const std::string& path, const std::string& name)
    : read_(path), write_(OutputFile::open(path, name)) {}

Handle OutputDriver::access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  OutputDriver* const self = this;
  H5Pset_driver(access.id(), Calls::id(), &self);
  return access;
}

void OutputDriver::check() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace gridlops::h5
