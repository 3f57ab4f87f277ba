// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "base/message.hpp"

namespace gridlops::h5 {

/// Owns an object of HDF5's, and closes it. Move-only.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// While it lives, HDF5 prints nothing. The program that links this library may have chosen otherwise, and
/// gets its choice back.
class Silence {
 public:
  Silence() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// Returns the reason for the last failed call of HDF5: the function that failed first, and why.
std::string reason();

/// Throws E unless HDF5's call has succeeded: the parts, and HDF5's reason.
template <class E, class Status, class... Parts>
Status checked(Status status, const Parts&... parts) {
  if (status < 0) throw E(message(parts..., ": HDF5 says: ", reason()));
  return status;
}

/// Checks a call that returns an object, and owns the object.
template <class E, class... Parts>
Handle owned(hid_t id, Handle::Close close, const Parts&... parts) {
  return {checked<E>(id, parts...), close};
}

/// Opens a user's HDF5 file for reading. Throws E. By default what a failed call may have left open does not
/// keep the file open.
template <class E>
Handle open_file(const std::string& path, H5F_close_degree_t degree = H5F_CLOSE_STRONG);

/// Whether an object of HDF5's has an attribute.
bool has_attribute(hid_t object, const char* name);

/// Returns the contents of a group, for a message: "it has A, B and 3 more", "it is empty".
std::string contents_of(hid_t group);

}  // namespace gridlops::h5
