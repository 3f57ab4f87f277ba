// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/space.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

/// Numbers, converted, in the memory of a backend. Throws OutOfMemory on this rank alone.
template <class To, class From>
Buffer<To> uploaded(const std::shared_ptr<Backend>& backend, const std::vector<From>& numbers) {
  if constexpr (!std::is_same_v<To, From>) {
    return uploaded<To>(backend, std::vector<To>(numbers.begin(), numbers.end()));
  } else {
    Buffer<To> memory(backend, static_cast<Index>(numbers.size()));
    if (memory.size() > 0) backend->upload(numbers.data(), memory.data(), memory.size() * Index{sizeof(To)});
    return memory;
  }
}

/// The product with a sparse matrix along one dimension of arrays, from a space to another whose arrays are
/// cut in the same way along the other dimensions. Lines has this rank's rows in the memory of a backend:
///
///   void reserve(backend)                   takes the memory
///   Index kept_bytes()                      what it takes
///   void add(kernels, α, X, β, Y, extent)   Y ← α A X + β Y for the rows of the extent
///
/// The shape of the whole matrix tells, for rows that follow each other:
///
///   Range within(Range rows, Range columns)   those that have elements in these columns only; they follow
///                                             each other, too
///   Range needed(Range rows)                  the columns in which they have elements
template <Scalar T, class Lines>
class LineProduct {
 public:
  /// Not collective.
  template <class Shape>
  LineProduct(const Space& to, const Space& from, int dim, const Shape& shape, Lines lines)
      : from_(from), dim_(at(dim)), lines_(std::move(lines)) {
    if (!from.grid->is_member()) return;
    const Box box = to.local_box(), from_box = from.local_box();
    extent_ = {1, 1, from_box[dim_], box[dim_], shape.within(box[dim_], from_box[dim_])};
    for (std::size_t d = 0; d < box.size(); ++d)
      if (d != dim_) (d < dim_ ? extent_.outer : extent_.inner) *= box[d].size;
    edges_ = edges_of(shape, box, from_box);
    // All ranks decide alike whether anything is sent.
    bool sends = false;
    for (int part = 0; part < from.dims.blocks() && !sends; ++part)
      sends = !edges_of(shape, to.dims.block(part), from.dims.block(part)).empty();
    if (!sends) return;
    exchange_.emplace(exchange_in<T>(from, [&](int part) {
      std::vector<Box> wants;
      for (Edge& edge : edges_of(shape, to.dims.block(part), from.dims.block(part)))
        wants.push_back(std::move(edge.needs));
      return wants;
    }));
  }

  /// Makes room for the matrix. Throws OutOfMemory on this rank alone.
  void reserve() const { lines_.reserve(from_.grid->backend()); }
  Index kept_bytes() const { return lines_.kept_bytes(); }

  /// Returns the elements of memory that a product with this many of this rank's columns needs: for the
  /// edges, and for the messages that fill them.
  Index memory_size(Index columns) const {
    return exchange_ ? halo_size() * columns + exchange_->memory_size(columns) : 0;
  }

  /// Y ← α A X + β Y. Computes the rows that need only this rank's block while the others' data travel.
  void multiply(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y, T* memory) const {
    Request request = start(X, memory);
    lines_.add(kernels(), alpha, X, beta, Y, extent_);
    finish(std::move(request), alpha, X, beta, Y, memory);
  }

  // The parts of a product, with the same memory: start() sends what other ranks need, the caller computes
  // the rows of extent(), which need only this rank's block, and finish() computes the others.

  /// Whether any rank needs data of another; the same on all ranks. If not, extent() has all rows.
  bool sends() const { return exchange_.has_value(); }
  const ArrayKernels<T>& kernels() const { return from_.grid->backend()->template kernels<T>().arrays(); }
  const Lines& lines() const { return lines_; }
  const LineExtent& extent() const { return extent_; }

  [[nodiscard]] Request start(MatrixView<const T> X, T* memory) const {
    return sends() ? exchange_->start_fetch(X, memory + halo_size() * X.cols) : Request();
  }
  void finish(Request request, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y, T* memory) const {
    if (!sends()) return;
    std::vector<MatrixView<T>> fetched;
    Index begin = 0;
    for (const Edge& edge : edges_) {
      const Index size = size_of(edge.needs);
      fetched.push_back({memory + begin, size, X.cols});
      begin += size * X.cols;
    }
    exchange_->finish_fetch(std::move(request), T(1), X, T(0), fetched, memory + halo_size() * X.cols);
    for (std::size_t k = 0; k < edges_.size(); ++k) {
      LineExtent extent = extent_;
      extent.x_rows = edges_[k].needs[dim_];
      extent.rows = edges_[k].rows;
      lines_.add(kernels(), alpha, fetched[k], beta, Y, extent);
    }
  }

 private:
  /// The elements that the edges need for one column.
  Index halo_size() const {
    Index size = 0;
    for (const Edge& edge : edges_) size += size_of(edge.needs);
    return size;
  }

  /// Rows of a dimension, and the box that their product needs.
  struct Edge {
    Range rows;
    Box needs;
  };
  /// The rows of a block whose product needs elements outside the block of the other space, in one or two
  /// pieces.
  template <class Shape>
  std::vector<Edge> edges_of(const Shape& shape, const Box& block, const Box& from) const {
    if (size_of(block) == 0) return {};
    const Range own = block[dim_], interior = shape.within(own, from[dim_]);
    std::vector<Edge> edges;
    for (const Range rows : {Range{own.begin, interior.size == 0 ? own.size : interior.begin - own.begin},
                             Range{interior.end(), interior.size == 0 ? 0 : own.end() - interior.end()}}) {
      if (rows.size == 0) continue;
      Edge edge{rows, from};
      edge.needs[dim_] = shape.needed(rows);
      edges.push_back(std::move(edge));
    }
    return edges;
  }

  Space from_;
  std::size_t dim_;
  Lines lines_;
  LineExtent extent_;
  std::vector<Edge> edges_;
  std::optional<BoxExchange<T>> exchange_;
};

/// The operator of two such products: with a matrix, and with its transpose.
template <Scalar T, class Product>
class LineOperator final : public LibraryOperator<T> {
 public:
  LineOperator(const Space& range, const Space& domain, Product forward, Product adjoint)
      : LibraryOperator<T>(range, domain), forward_(std::move(forward)), adjoint_(std::move(adjoint)) {}

 private:
  void do_reserve(Op op, const Partition&) const override {
    (op == Op::none ? forward_ : adjoint_).reserve();
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return ScratchStack::bytes_of<T>((kind == ProductKind::forward ? forward_ : adjoint_)
                                         .memory_size(this->domain().local_columns(columns)));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    kept.add(this, forward_.kept_bytes() + adjoint_.kept_bytes());
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(forward_, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(adjoint_, alpha, Y, beta, X);
  }
  static void multiply(const Product& product, T alpha, const ConstDistMatrix<T>& in, T beta,
                       DistMatrix<T>& out) {
    const ScratchArray<T> memory(*in.grid(), product.memory_size(in.local().cols));
    product.multiply(alpha, in.local(), beta, out.local(), memory.data());
  }
  Product forward_, adjoint_;
};

}  // namespace gridlops
