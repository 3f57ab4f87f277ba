// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/kirchhoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/array/line_product.hpp"
#include "ops/operator/cut_block.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The boxes of the parts that this rank's functions in local_operator() have.
std::vector<Box> boxes_of(const Space& space, const Space& other) {
  const auto block = nested_block(space, other);
  const int first = block ? block->first_part : space.grid->my_part(space.rows.axis);
  std::vector<Box> boxes;
  for (int part = first; part < first + (block ? block->parts() : 1); ++part)
    boxes.push_back(space.dims.block(part));
  return boxes;
}

/// The positions of the elements of these parts, one part after the other, in the C order of the array's
/// first `dims` dimensions.
std::vector<Index> elements_of(const Space& space, const Space& other, int dims) {
  std::vector<Index> numbers;
  for (Box box : boxes_of(space, other)) {
    box.resize(at(dims));
    const std::vector<Index> of_part = elements_of(box, space.dims.sizes());
    numbers.insert(numbers.end(), of_part.begin(), of_part.end());
  }
  return numbers;
}

template <Scalar T>
class Kirchhoff final : public LibraryOperator<T> {
  using R = Real<T>;

 public:
  Kirchhoff(const Space& data, const Space& image, RayValues times, Recording recording,
            KirchhoffOptions options)
      : LibraryOperator<T>(data, image),
        recording_(std::move(recording)),
        table_bytes_(options.table_bytes),
        wavelets_(options.spread ? options.spread->widest : 1),
        layers_{std::move(times)} {
    if (wavelets_ > 1) layers_.push_back(std::move(options.spread->delays));
    for (RayValues& term : options.weights) layers_.push_back(std::move(term));
    // traces_ belongs to this object, so its functions may refer to `this`.
    const auto make = keeps_tables() ? library_local_operator<T> : local_operator<T>;
    traces_ = make(
        data, image,
        [this](MatrixView<const T> in, MatrixView<T> out) {
          for_blocks([&](Range block) {
            kernels().demigrate(tables_, block.begin > 0, in.row_block(block), out, scratch_);
          });
        },
        [this](MatrixView<const T> in, MatrixView<T> out) {
          for_blocks([&](Range block) { kernels().migrate(tables_, in, out.row_block(block), scratch_); });
        });
  }

 private:
  /// The sources, or the receivers, of the traces that this rank computes with.
  struct Ends {
    const char* name;
    AtPoints RayValues::*values;
    std::vector<Index> numbers{};         // ascending
    Buffer<R> tables{};                   // for each layer a table of points × ends
    std::vector<ArrivalSpan<R>> spans{};  // of the times to each end
    Index count() const { return static_cast<Index>(numbers.size()); }
    Index column(Index number) const {
      return std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin();
    }
  };

  bool keeps_tables() const { return table_bytes_ == KirchhoffOptions{}.table_bytes; }
  const ArrayKernels<T>& kernels() const { return backend()->template kernels<T>().arrays(); }
  const std::shared_ptr<Backend>& backend() const { return this->range().grid->backend(); }
  void do_reserve(Op, const Partition&) const override {
    if (tables_.wavelet == nullptr) make_tables();
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return traces_->scratch_bytes(kind, columns) +
           ScratchStack::bytes_of<std::byte>(scratch_size(this->range().local_columns(columns)));
  }
  /// The tables, and a column of one in either precision; numbers and places of points and traces.
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    if (tables_.length == 0) count_ends();
    const Index ends = sources_.count() + receivers_.count();
    kept.add(this, block_ * (ends * tables_.layers() * Index{sizeof(R)} + Index{sizeof(double) + sizeof(R)}) +
                       points_here_ * Index{sizeof(Index)} + tables_.traces * Index{sizeof(TraceColumns)} +
                       tables_.wavelets * tables_.length * Index{sizeof(R)});
    traces_->add_kept_bytes(kept, columns);
  }
  Index scratch_size(Index columns) const {
    if (columns == 0) return 0;
    if (tables_.length == 0) count_ends();
    MigrationTables<R> largest = tables_;
    largest.points = block_;
    return kernels().migration_scratch_bytes(largest, columns);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const ScratchArray<std::byte> scratch(*X.grid(), scratch_size(X.local().cols));
    scratch_ = scratch.data();
    traces_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const ScratchArray<std::byte> scratch(*Y.grid(), scratch_size(Y.local().cols));
    scratch_ = scratch.data();
    traces_->apply_adjoint(alpha, Y, beta, X);
  }

  /// Calls multiply(points) for one block of the points after the other, with tables_ of that block.
  /// There is at least one block.
  template <class Multiply>
  void for_blocks(Multiply&& multiply) const {
    const Index points = static_cast<Index>(points_.size());
    for (Index begin = 0; begin == 0 || begin < points; begin += block_) {
      const Range block{begin, std::min(block_, points - begin)};
      if (!keeps_tables()) fill_tables(block);
      multiply(block);
      if (block_ == 0) break;
    }
  }

  /// Finds the points and traces that this rank computes with, the sources and receivers, and how many points
  /// have tables at a time.
  void count_ends() const {
    const Space &data = this->range(), &image = this->domain();
    points_here_ = 0;
    for (const Box& box : boxes_of(image, data)) points_here_ += size_of(box);
    std::vector<TraceEnds> ends;
    for (const Index trace : elements_of(data, image, data.dims.count() - 1)) {
      ends.push_back(recording_.ends(trace));
      sources_.numbers.push_back(ends.back().source);
      receivers_.numbers.push_back(ends.back().receiver);
    }
    const Index layers = static_cast<Index>(layers_.size());
    for (Ends* const side : {&sources_, &receivers_}) {
      std::sort(side->numbers.begin(), side->numbers.end());
      side->numbers.erase(std::unique(side->numbers.begin(), side->numbers.end()), side->numbers.end());
      side->spans.resize(side->numbers.size());
    }
    const Index bytes_of_point = (sources_.count() + receivers_.count()) * layers * Index{sizeof(R)};
    block_ = points_here_;
    if (bytes_of_point > 0) block_ = std::min(block_, std::max(table_bytes_ / bytes_of_point, Index{1}));
    columns_of_traces_.clear();
    for (const TraceEnds& of : ends)
      columns_of_traces_.push_back({sources_.column(of.source), receivers_.column(of.receiver)});
    tables_.points = block_;
    tables_.sources = sources_.count();
    tables_.receivers = receivers_.count();
    tables_.traces = static_cast<Index>(ends.size());
    tables_.samples = data.dims.size(data.dims.count() - 1);
    tables_.wavelets = wavelets_;
    tables_.terms = layers - 1 - (tables_.chooses() ? 1 : 0);
    tables_.length = static_cast<Index>(recording_.wavelet.size()) + 2 * (wavelets_ - 1);
    tables_.centre = recording_.centre + wavelets_ - 1;
  }

  /// Takes the memory, and fills tables that stay.
  void make_tables() const {
    if (tables_.length == 0) count_ends();
    points_ = elements_of(this->domain(), this->range(), this->domain().dims.count());
    values_.resize(at(block_));
    rounded_.resize(at(block_));
    for (Ends* const ends : {&sources_, &receivers_})
      ends->tables = Buffer<R>(backend(), block_ * ends->count() * tables_.layers());
    columns_ = uploaded<TraceColumns>(backend(), columns_of_traces_);
    wavelet_ = uploaded<R>(backend(), spread_wavelets());
    if (keeps_tables()) fill_tables({0, block_});
    tables_.columns = columns_.data();
    tables_.from_sources = sources_.tables.data();
    tables_.to_receivers = receivers_.tables.data();
    tables_.source_spans = sources_.spans.data();
    tables_.receiver_spans = receivers_.spans.data();
    tables_.wavelet = wavelet_.data();
    columns_of_traces_ = {};
  }

  /// f ∗ Λₕ for h = 1 … widest, each with zeros up to the same length.
  std::vector<double> spread_wavelets() const {
    std::vector<double> all(at(wavelets_ * tables_.length), 0);
    for (Index h = 1; h <= wavelets_; ++h)
      for (Index j = 0; j < static_cast<Index>(recording_.wavelet.size()); ++j)
        for (Index k = 1 - h; k < h; ++k)
          all[at((h - 1) * tables_.length + wavelets_ - 1 + j + k)] +=
              recording_.wavelet[at(j)] * static_cast<double>(h - std::abs(k)) / static_cast<double>(h * h);
    return all;
  }

  void fill_tables(Range block) const {
    tables_.points = block.size;
    for (Ends* const ends : {&sources_, &receivers_}) {
      for (Index end = 0; end < ends->count(); ++end) {
        for (Index layer = 0; layer < static_cast<Index>(layers_.size()); ++layer) {
          fill_column(*ends, end, layer, block);
          if (block.size > 0)
            backend()->upload(rounded_.data(),
                              ends->tables.data() + (layer * ends->count() + end) * block.size,
                              block.size * Index{sizeof(R)});
        }
      }
    }
  }

  /// rounded_ ← the times or delays, in samples, or the weights between an end and the points of the block.
  void fill_column(Ends& ends, Index end, Index layer, Range block) const {
    const std::span<const Index> points = std::span(points_).subspan(at(block.begin), at(block.size));
    const std::span<double> values = std::span(values_).first(at(block.size));
    const Index number = ends.numbers[at(end)];
    (layers_[at(layer)].*ends.values)(number, points, values);
    const bool are_times = layer == 0, are_delays = layer == 1 && tables_.chooses();
    ArrivalSpan<R> span{std::numeric_limits<R>::infinity(), -1};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      require_here<UsageError>(
          (are_times || std::isfinite(value)) && (value >= 0 || !(are_times || are_delays)), "the ",
          are_times    ? "travel time"
          : are_delays ? "delay"
                       : "weight",
          " between ", ends.name, " ", number, " and point ", points[i], " is ", value, "; it must be ",
          are_times    ? "0 or more, or infinite"
          : are_delays ? "0 or more, and finite"
                       : "finite");
      rounded_[i] = static_cast<R>(are_times || are_delays ? value / recording_.interval : value);
      if (!std::isfinite(rounded_[i])) continue;
      span = {std::min(span.least, rounded_[i]), std::max(span.most, rounded_[i])};
    }
    if (are_times) ends.spans[at(end)] = span;
  }

  const Recording recording_;
  const Index table_bytes_, wavelets_;
  std::vector<RayValues> layers_;  // times, delays if arrivals are spread, and then the terms of the weights
  OperatorPtr<T> traces_;
  mutable Index points_here_ = 0;      // how many this rank computes with
  mutable std::vector<Index> points_;  // which these are
  mutable std::vector<TraceColumns> columns_of_traces_;
  mutable std::byte* scratch_ = nullptr;  // of the product at work
  mutable Index block_ = 0;               // how many of them have tables at a time
  mutable Ends sources_{"source", &RayValues::from_source}, receivers_{"receiver", &RayValues::to_receiver};
  mutable std::vector<double> values_;  // of a column of a table
  mutable std::vector<R> rounded_;
  mutable Buffer<TraceColumns> columns_;
  mutable Buffer<R> wavelet_;
  mutable MigrationTables<R> tables_;
};

/// A straight ray between a point and an end: its length, and how much of it is vertical.
struct StraightRay {
  double length, depth;

  double cosine() const { return length > 0 ? depth / length : 1; }
};

/// A number of each straight ray, by one function for sources and one for receivers.
class StraightRays {
 public:
  StraightRays(const std::vector<Index>& sizes, const ImageAxes& axes, std::vector<Position> sources,
               std::vector<Position> receivers, double velocity)
      : sizes_(sizes), axes_(axes), sources_(std::move(sources)), receivers_(std::move(receivers)) {
    require<UsageError>(velocity > 0, "the velocity of waves is ", velocity, "; it must be positive");
    check(axes.origin, "the origin of an image");
    check(axes.spacing, "the spacing of an image");
    for (const Position& source : sources_) check(source, "a source");
    for (const Position& receiver : receivers_) check(receiver, "a receiver");
  }

  template <class OfSource, class OfReceiver>
  RayValues values(const OfSource& of_source, const OfReceiver& of_receiver) const {
    return {along(sources_, of_source), along(receivers_, of_receiver)};
  }

 private:
  void check(const std::vector<double>& coordinates, const char* name) const {
    require<ShapeError>(coordinates.size() == sizes_.size(), name, " has ", coordinates.size(),
                        " coordinates, but the image has ", sizes_.size(), " dimensions");
  }
  template <class Value>
  AtPoints along(const std::vector<Position>& positions, const Value& value) const {
    return [sizes = sizes_, axes = axes_, positions, value](Index end, std::span<const Index> points,
                                                            std::span<double> values) {
      require_here<UsageError>(0 <= end && end < static_cast<Index>(positions.size()),
                               "a trace has source or receiver number ", end, ", but there are ",
                               positions.size(), " positions");
      const Position& position = positions[at(end)];
      for (std::size_t i = 0; i < points.size(); ++i) {
        double squares = 0, depth = 0;
        Index point = points[i];
        for (std::size_t d = sizes.size(); d-- > 0; point /= sizes[d]) {
          const double along = axes.origin[d] + axes.spacing[d] * static_cast<double>(point % sizes[d]);
          const double distance = std::abs(along - position[d]);
          if (d == sizes.size() - 1) depth = distance;
          squares += distance * distance;
        }
        values[i] = value(StraightRay{std::sqrt(squares), depth});
      }
    };
  }

  std::vector<Index> sizes_;
  ImageAxes axes_;
  std::vector<Position> sources_, receivers_;
};

}  // namespace

RayValues straight_rays(const std::vector<Index>& sizes, const ImageAxes& axes, std::vector<Position> sources,
                        std::vector<Position> receivers, double velocity, double widest) {
  require<UsageError>(widest > 0, "the widest angle of a ray is ", widest, " degrees; it must be positive");
  const StraightRays rays(sizes, axes, std::move(sources), std::move(receivers), velocity);
  const double least_cosine = widest < 90 ? std::cos(widest / 180 * std::numbers::pi) : 0;
  const auto time = [=](const StraightRay& ray) {
    return ray.cosine() < least_cosine ? std::numeric_limits<double>::infinity() : ray.length / velocity;
  };
  return rays.values(time, time);
}

std::vector<RayValues> straight_ray_weights(const std::vector<Index>& sizes, const ImageAxes& axes,
                                            std::vector<Position> sources, std::vector<Position> receivers,
                                            double velocity) {
  const StraightRays rays(sizes, axes, std::move(sources), std::move(receivers), velocity);
  double least = std::numeric_limits<double>::infinity();
  for (const double spacing : axes.spacing) least = std::min(least, std::abs(spacing));
  require<UsageError>(least > 0,
                      "an image whose points are 0 apart has no finite weights; give all spacings");
  const double power = (1 - static_cast<double>(sizes.size())) / 2;
  const auto spread = [=](const StraightRay& ray) { return std::pow(std::max(ray.length, least), power); };
  const auto slow = [=](const StraightRay& ray) { return spread(ray) / velocity; };
  const auto oblique = [=](const StraightRay& ray) { return spread(ray) * ray.cosine(); };
  return {rays.values(oblique, slow), rays.values(slow, oblique)};
}

RayValues straight_ray_delays(const std::vector<Index>& sizes, const ImageAxes& axes,
                              std::vector<Position> sources, std::vector<Position> receivers, double velocity,
                              double between_sources, double between_receivers) {
  for (const double distance : {between_sources, between_receivers})
    require<UsageError>(distance >= 0 && std::isfinite(distance), "the distance between neighbours is ",
                        distance, "; it must be 0 or more");
  const StraightRays rays(sizes, axes, std::move(sources), std::move(receivers), velocity);
  const auto delay = [velocity](double distance) {
    return [=](const StraightRay& ray) {
      return distance * std::sqrt(std::max(0.0, 1 - ray.cosine() * ray.cosine())) / velocity;
    };
  };
  return rays.values(delay(between_sources), delay(between_receivers));
}

RayValues tabulated_rays(Index points, std::vector<double> from_sources, std::vector<double> to_receivers) {
  const auto column = [points](std::vector<double> table) {
    return
        [points, table = std::move(table)](Index end, std::span<const Index> some, std::span<double> values) {
          for (std::size_t i = 0; i < some.size(); ++i) {
            require_here<UsageError>(
                0 <= end && end * points + some[i] < static_cast<Index>(table.size()) && some[i] < points,
                "a table of ", table.size(), " numbers for ", points, " points has none of point number ",
                some[i], " and source or receiver number ", end);
            values[i] = table[at(end * points + some[i])];
          }
        };
  };
  return {column(std::move(from_sources)), column(std::move(to_receivers))};
}

template <Scalar T>
OperatorPtr<T> kirchhoff(const Space& data, const Space& image, RayValues times, const Recording& recording,
                         KirchhoffOptions options) {
  const int dims = data.dims.count();
  require<ShapeError>(dims > 1 && data.dims.cut(dims - 1).parts() == 1 && image.dims.count() > 0,
                      "Kirchhoff demigration goes from the points of an array to traces x samples, whole "
                      "traces on each rank, "
                      "but not from ",
                      image.describe(), " to ", data.describe(), "; make the spaces with array_space()");
  require<ShapeError>(recording.ends || dims == 3, "data of ", data.dims.describe(),
                      " are not sources x receivers x samples, so nobody knows the source and receiver of a "
                      "trace; give Recording::ends");
  require<ShapeError>(
      image.rows.axis == Axis::uncut || image.rows.axis != data.rows.axis,
      "an image and data that are both cut along ", name_of(data.rows.axis),
      " have no rank for each pair of their parts; let every rank have the image (uncut), or cut the "
      "two along the rows and the columns of the grid");
  const Index widest = options.spread ? options.spread->widest : 1;
  require<UsageError>(1 <= widest && widest <= 1024,
                      "the widest triangle into which an arrival is spread is ", widest,
                      " samples; it must be 1 to 1024");
  const Index samples = data.dims.size(dims - 1),
              most = std::min(Index{1} << std::numeric_limits<Real<T>>::digits, (Index{1} << 30) / widest);
  require<ShapeError>(samples <= most, "traces have ", samples, " samples, but arrivals in ",
                      name_of(scalar_type_of<T>), " can tell ", most,
                      " apart; use double precision, shorter traces, or narrower triangles");
  const auto length = static_cast<Index>(recording.wavelet.size());
  require<UsageError>(std::isfinite(recording.interval) && recording.interval > 0,
                      "the interval between samples is ", recording.interval, "; it must be positive");
  require<UsageError>(0 <= recording.centre && recording.centre < length, "a wavelet of ", length,
                      " samples has no sample number ", recording.centre,
                      " to be its centre; samples are numbered from 0");
  Recording complete = recording;
  if (!complete.ends)
    complete.ends = [receivers = data.dims.size(1)](Index trace) {
      return TraceEnds{trace / receivers, trace % receivers};
    };
  return std::make_shared<Kirchhoff<T>>(data, image, std::move(times), std::move(complete),
                                        std::move(options));
}

#define GRIDLOPS_INSTANTIATE(T)                                                              \
  template OperatorPtr<T> kirchhoff(const Space&, const Space&, RayValues, const Recording&, \
                                    KirchhoffOptions);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
