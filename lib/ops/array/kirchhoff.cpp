// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/kirchhoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The positions of a box's elements in the C order of an array.
std::vector<Index> elements_of(const Box& box, const Dims& dims) {
  std::vector<Index> numbers{0};
  for (std::size_t d = 0; d < box.size(); ++d) {
    std::vector<Index> finer;
    for (const Index outer : numbers)
      for (Index i = box[d].begin; i < box[d].end(); ++i)
        finer.push_back(outer * dims.size(static_cast<int>(d)) + i);
    numbers = std::move(finer);
  }
  return numbers;
}

template <Scalar T>
class Kirchhoff final : public LibraryOperator<T> {
 public:
  Kirchhoff(const Space& data, const Space& image, TravelTimes times, Recording recording)
      : LibraryOperator<T>(data, image), times_(std::move(times)), recording_(std::move(recording)) {
    // traces_ belongs to this object, so its functions may refer to `this`.
    traces_ = library_local_operator<T>(
        data, image,
        [this](MatrixView<const T> in, MatrixView<T> out) {
          kernels().demigrate(tables_, in, out, scratch(in.cols));
        },
        [this](MatrixView<const T> in, MatrixView<T> out) {
          kernels().migrate(tables_, in, out, scratch(in.cols));
        });
  }

 private:
  const ArrayKernels<T>& kernels() const { return backend()->template kernels<T>().arrays(); }
  const std::shared_ptr<Backend>& backend() const { return this->range().grid->backend(); }
  std::byte* scratch(Index columns) const {
    return detail::scratch_of(*this->range().grid, kernels().migration_scratch_bytes(tables_, columns));
  }

  void do_reserve(Op, const Partition& columns) const override {
    if (tables_.wavelet == nullptr) make_tables();
    if (const Index here = this->range().local_columns(columns); here > 0) scratch(here);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    traces_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    traces_->apply_adjoint(alpha, Y, beta, X);
  }

  void make_tables() const {
    const Box traces = this->range().local_box();
    const std::vector<Index> points = elements_of(this->domain().local_box(), this->domain().dims);
    from_sources_ = table(times_.from_source, traces[0], points, "source", source_spans_);
    to_receivers_ = table(times_.to_receiver, traces[1], points, "receiver", receiver_spans_);
    wavelet_ = uploaded(std::vector<Real<T>>(recording_.wavelet.begin(), recording_.wavelet.end()));
    tables_ = {.points = static_cast<Index>(points.size()),
               .sources = traces[0].size,
               .receivers = traces[1].size,
               .samples = traces[2].size,
               .from_sources = from_sources_.data(),
               .to_receivers = to_receivers_.data(),
               .wavelet = wavelet_.data(),
               .length = wavelet_.size(),
               .centre = recording_.centre,
               .source_spans = source_spans_.data(),
               .receiver_spans = receiver_spans_.data()};
  }

  template <class R>
  Buffer<R> uploaded(const std::vector<R>& values) const {
    Buffer<R> memory(backend(), static_cast<Index>(values.size()));
    backend()->upload(values.data(), memory.data(), memory.size() * Index{sizeof(R)});
    return memory;
  }

  /// The times, in samples, between these ends and all points.
  Buffer<double> table(const std::function<double(Index, Index)>& time, Range ends,
                       const std::vector<Index>& points, const char* end_name,
                       std::vector<ArrivalSpan>& spans) const {
    std::vector<double> values;
    values.reserve(at(ends.size) * points.size());
    spans.clear();
    for (Index end = ends.begin; end < ends.end(); ++end) {
      ArrivalSpan span{std::numeric_limits<double>::infinity(), -1};
      for (const Index point : points) {
        const double samples = time(end, point) / recording_.interval;
        require<UsageError>(samples >= 0, "the travel time between ", end_name, " ", end, " and point ",
                            point, " is ", samples * recording_.interval,
                            "; it must be 0 or more, or infinite");
        values.push_back(samples);
        if (!std::isfinite(samples)) continue;
        span = {std::min(span.least, samples), std::max(span.most, samples)};
      }
      spans.push_back(span);
    }
    return uploaded(values);
  }

  const TravelTimes times_;
  const Recording recording_;
  OperatorPtr<T> traces_;
  mutable Buffer<double> from_sources_, to_receivers_;
  mutable Buffer<Real<T>> wavelet_;
  mutable std::vector<ArrivalSpan> source_spans_, receiver_spans_;
  mutable MigrationTables<Real<T>> tables_;
};

/// The distance between two points, computed one coordinate at a time.
double distance(const std::vector<Index>& sizes, const ImageAxes& axes, Index point, const Position& end) {
  double squares = 0;
  for (std::size_t d = sizes.size(); d-- > 0; point /= sizes[d])
    squares += std::pow(axes.origin[d] + axes.spacing[d] * static_cast<double>(point % sizes[d]) - end[d], 2);
  return std::sqrt(squares);
}

}  // namespace

TravelTimes straight_rays(const std::vector<Index>& sizes, const ImageAxes& axes,
                          std::vector<Position> sources, std::vector<Position> receivers, double velocity) {
  require<UsageError>(velocity > 0, "the velocity of waves is ", velocity, "; it must be positive");
  const auto check = [&](const std::vector<double>& coordinates, const char* name) {
    require<ShapeError>(coordinates.size() == sizes.size(), name, " has ", coordinates.size(),
                        " coordinates, but the image has ", sizes.size(), " dimensions");
  };
  check(axes.origin, "the origin of an image");
  check(axes.spacing, "the spacing of an image");
  for (const Position& source : sources) check(source, "a source");
  for (const Position& receiver : receivers) check(receiver, "a receiver");
  const auto rays = [=](std::vector<Position> positions) {
    return [=, ends = std::move(positions)](Index end, Index point) {
      require<UsageError>(end < static_cast<Index>(ends.size()),
                          "the data have sources or receivers up to number ", end,
                          " and more, but there are ", ends.size(), " positions");
      return distance(sizes, axes, point, ends[at(end)]) / velocity;
    };
  };
  return {rays(std::move(sources)), rays(std::move(receivers))};
}

TravelTimes tabulated_times(Index points, std::vector<double> from_sources,
                            std::vector<double> to_receivers) {
  const auto column = [points](std::vector<double> table) {
    return [points, table = std::move(table)](Index end, Index point) {
      require<UsageError>(end * points + point < static_cast<Index>(table.size()) && point < points,
                          "a table of ", table.size(), " travel times to ", points,
                          " points has none of point number ", point, " and source or receiver number ", end);
      return table[at(end * points + point)];
    };
  };
  return {column(std::move(from_sources)), column(std::move(to_receivers))};
}

template <Scalar T>
OperatorPtr<T> kirchhoff(const Space& data, const Space& image, TravelTimes times,
                         const Recording& recording) {
  require<ShapeError>(
      data.dims.count() == 3 && data.dims.cut(2).parts() == 1 && image.dims.count() > 0,
      "Kirchhoff demigration goes from the points of an array to sources x receivers x samples, "
      "whole traces on each rank, but not from ",
      image.describe(), " to ", data.describe(), "; make the spaces with array_space()");
  require<ShapeError>(
      image.rows.axis == Axis::uncut || image.rows.axis != data.rows.axis,
      "an image and data that are both cut along ", name_of(data.rows.axis),
      " have no rank for each pair of their parts; let every rank have the image (uncut), or cut the "
      "two along the rows and the columns of the grid");
  const auto length = static_cast<Index>(recording.wavelet.size());
  require<UsageError>(std::isfinite(recording.interval) && recording.interval > 0,
                      "the interval between samples is ", recording.interval, "; it must be positive");
  require<UsageError>(0 <= recording.centre && recording.centre < length, "a wavelet of ", length,
                      " samples has no sample number ", recording.centre,
                      " to be its centre; samples are numbered from 0");
  return std::make_shared<Kirchhoff<T>>(data, image, std::move(times), recording);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> kirchhoff(const Space&, const Space&, TravelTimes, const Recording&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
