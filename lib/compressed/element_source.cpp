// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/element_source.hpp"

#include <algorithm>
#include <numeric>

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
  void read(std::span<const Index> rows, std::span<const Index> cols, MatrixView<T> to) override {
    const MatrixView<const T> block = A_.local();
    Backend& backend = *A_.grid()->backend();
    const bool on_host = backend.memory_space() == MemorySpace::host;
    column_.resize(on_host ? 0 : at(block.rows));
    for (Index j = 0; j < to.cols; ++j) {
      const T* from = block.column(cols[at(j)]);
      if (!on_host) {
        backend.download(from, column_.data(), block.rows * Index{sizeof(T)});
        from = column_.data();
      }
      for (Index i = 0; i < to.rows; ++i) to(i, j) = from[rows[at(i)]];
    }
  }

 private:
  ConstDistMatrix<T> A_;
  std::vector<T> column_;
};

template <Scalar T>
class FileSource final : public ElementSource<T> {
 public:
  FileSource(const std::string& name, const MatrixHeader& header, Range rows, Range cols)
      : ElementSource<T>(rows, cols), reader_(name, header) {}

  bool by_columns() const override { return reader_.by_columns(); }
  // Lines that follow each other in the file are read together.
  void read(std::span<const Index> rows, std::span<const Index> cols, MatrixView<T> to) override {
    const std::span<const Index> lines = by_columns() ? cols : rows;
    std::vector<Index> sorted(lines.size());
    std::iota(sorted.begin(), sorted.end(), Index{0});
    std::sort(sorted.begin(), sorted.end(), [&](Index a, Index b) { return lines[at(a)] < lines[at(b)]; });
    for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
      const Index first = lines[at(sorted[begin])];
      for (end = begin + 1; end < sorted.size(); ++end)
        if (lines[at(sorted[end])] != first + static_cast<Index>(end - begin)) break;
      const std::span<const Index> run(sorted.data() + begin, end - begin);
      by_columns() ? read_columns(first, run, rows, to) : read_rows(first, run, cols, to);
    }
  }

 private:
  void read_columns(Index first, std::span<const Index> run, std::span<const Index> rows, MatrixView<T> to) {
    const MatrixView<T> block = view(this->rows().size, std::ssize(run));
    reader_.read(this->rows(), {this->cols().begin + first, std::ssize(run)}, block);
    for (Index k = 0; k < block.cols; ++k)
      for (Index i = 0; i < to.rows; ++i) to(i, run[at(k)]) = block(rows[at(i)], k);
  }
  void read_rows(Index first, std::span<const Index> run, std::span<const Index> cols, MatrixView<T> to) {
    const MatrixView<T> block = view(std::ssize(run), this->cols().size);
    reader_.read({this->rows().begin + first, std::ssize(run)}, this->cols(), block);
    for (Index j = 0; j < to.cols; ++j)
      for (Index k = 0; k < block.rows; ++k) to(run[at(k)], j) = block(k, cols[at(j)]);
  }
  MatrixView<T> view(Index rows, Index cols) {
    lines_.resize(std::max(lines_.size(), at(rows * cols)));
    return {lines_.data(), rows, cols};
  }

  MatrixReader<T> reader_;
  std::vector<T> lines_;
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
