// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/element_source.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "io/matrix_reader.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class MemorySource final : public ElementSource<T> {
 public:
  explicit MemorySource(const ConstDistMatrix<T>& A)
      : ElementSource<T>(A.local_row_range(), A.local_col_range()), A_(A) {}

  bool by_columns() const override { return true; }
  MatrixView<const T> read(Range rows, Range cols) override {
    const MatrixView<const T> block = A_.local().block(rows, cols);
    Backend& backend = *A_.grid()->backend();
    if (backend.memory_space() == MemorySpace::host) return block;
    copy_.resize(at(block.size()));
    for (Index j = 0; j < block.cols; ++j)
      backend.download(block.column(j), copy_.data() + j * block.rows, block.rows * Index{sizeof(T)});
    return {copy_.data(), block.rows, block.cols};
  }
  void gather(std::span<const Index> rows, std::span<const Index> cols, MatrixView<T> to) override {
    for (Index j = 0; j < to.cols; ++j) {
      const T* const from = read({0, this->rows().size}, {cols[at(j)], 1}).data;
      for (Index i = 0; i < to.rows; ++i) to(i, j) = from[rows[at(i)]];
    }
  }

 private:
  ConstDistMatrix<T> A_;
  std::vector<T> copy_;
};

template <Scalar T>
class FileSource final : public ElementSource<T> {
 public:
  FileSource(const std::string& name, const MatrixHeader& header, Range rows, Range cols)
      : ElementSource<T>(rows, cols), reader_(name, header) {}

  bool by_columns() const override { return reader_.by_columns(); }
  MatrixView<const T> read(Range rows, Range cols) override {
    elements_.resize(std::max(elements_.size(), at(rows.size * cols.size)));
    const MatrixView<T> part(elements_.data(), rows.size, cols.size);
    reader_.read({this->rows().begin + rows.begin, rows.size}, {this->cols().begin + cols.begin, cols.size},
                 part);
    return part;
  }
  // Lines that follow each other in the file are read together.
  void gather(std::span<const Index> rows, std::span<const Index> cols, MatrixView<T> to) override {
    const std::span<const Index> lines = by_columns() ? cols : rows;
    std::vector<Index> sorted(lines.size());
    std::iota(sorted.begin(), sorted.end(), Index{0});
    std::sort(sorted.begin(), sorted.end(), [&](Index a, Index b) { return lines[at(a)] < lines[at(b)]; });
    for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
      const Index first = lines[at(sorted[begin])];
      for (end = begin + 1; end < sorted.size(); ++end)
        if (lines[at(sorted[end])] != first + static_cast<Index>(end - begin)) break;
      const std::span<const Index> run(sorted.data() + begin, end - begin);
      by_columns() ? gather_columns(first, run, rows, to) : gather_rows(first, run, cols, to);
    }
  }

 private:
  void gather_columns(Index first, std::span<const Index> run, std::span<const Index> rows,
                      MatrixView<T> to) {
    const MatrixView<const T> block = read({0, this->rows().size}, {first, std::ssize(run)});
    for (Index k = 0; k < block.cols; ++k)
      for (Index i = 0; i < to.rows; ++i) to(i, run[at(k)]) = block(rows[at(i)], k);
  }
  void gather_rows(Index first, std::span<const Index> run, std::span<const Index> cols, MatrixView<T> to) {
    const MatrixView<const T> block = read({first, std::ssize(run)}, {0, this->cols().size});
    for (Index j = 0; j < to.cols; ++j)
      for (Index k = 0; k < block.rows; ++k) to(run[at(k)], j) = block(k, cols[at(j)]);
  }

  MatrixReader<T> reader_;
  std::vector<T> elements_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<ElementSource<T>> source_in_memory(const ConstDistMatrix<T>& A) {
  return std::make_unique<MemorySource<T>>(A);
}

template <Scalar T>
std::unique_ptr<ElementSource<T>> source_in_file(const std::string& name, const MatrixHeader& header,
                                                 Range rows, Range cols) {
  return std::make_unique<FileSource<T>>(name, header, rows, cols);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template std::unique_ptr<ElementSource<T>> source_in_memory(const ConstDistMatrix<T>&);                   \
  template std::unique_ptr<ElementSource<T>> source_in_file(const std::string&, const MatrixHeader&, Range, \
                                                            Range);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
