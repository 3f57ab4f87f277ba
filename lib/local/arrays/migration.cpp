// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/migration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/correlate.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// This many columns lie side by side and share the search for samples. Fewer columns are faster one by one.
template <Scalar T>
constexpr Index columns_at_once = 32 / Index{sizeof(T)};
constexpr Index points_at_once = 1024;
/// The most traces of a group, and the traces of a group that are taken at a time, whose sums do not wait for
/// each other.
constexpr Index most_traces = 32;
constexpr std::size_t traces_at_once = 2;

/// The place of the pair to which each point of a piece of the image contributes, how far it arrives behind
/// that pair's sample, and its weight.
template <class R>
struct Arrivals {
  std::array<std::int32_t, points_at_once> place;
  std::array<R, points_at_once> behind, weight;
};

/// Where the points of the image arrive in traces, whatever the type and the number of a product's columns.
template <class R>
class ArrivalTables {
 public:
  explicit ArrivalTables(const MigrationTables<R>& tables) : tables_(tables) {}

  /// Of a trace: its columns of the tables, and the samples ⌊t⌋ at which waves may arrive.
  struct Times {
    const R *from_source, *to_receiver;
    Range arrivals{0, 0};
  };
  Times times_of(Index trace) const {
    const auto [s, r] = tables_.columns[trace];
    const R end = static_cast<R>(tables_.samples - 1);
    // Rounding keeps the order of sums, so these bound those in find().
    const R least = tables_.source_spans[s].least + tables_.receiver_spans[r].least;
    const R most = tables_.source_spans[s].most + tables_.receiver_spans[r].most;
    Times times{tables_.from_sources + s * tables_.points, tables_.to_receivers + r * tables_.points};
    if (least <= most && least < end) {
      times.arrivals.begin = static_cast<Index>(least);
      times.arrivals.size = static_cast<Index>(std::min(most, end - 1)) + 1 - times.arrivals.begin;
    }
    return times;
  }
  /// How these points arrive in a trace.
  void find(Arrivals<R>& found, const Times& times, Range points) const {
    const R* from_source = times.from_source + points.begin;
    const R* to_receiver = times.to_receiver + points.begin;
    find_arrivals(points.size, from_source, to_receiver, static_cast<R>(tables_.samples - 1),
                  found.place.data(), found.behind.data());
    const auto next_tables = [&] {
      from_source += tables_.points * tables_.sources;
      to_receiver += tables_.points * tables_.receivers;
    };
    if (tables_.chooses()) {
      next_tables();
      const auto samples = static_cast<std::int32_t>(tables_.samples);
      const auto last = static_cast<R>(tables_.wavelets);
      for (Index i = 0; i < points.size; ++i) {
        const R width = std::min(from_source[i] + to_receiver[i] + R(0.5), last);
        found.place[at(i)] += samples * (std::max(static_cast<std::int32_t>(width), 1) - 1);
      }
    }
    if (tables_.terms == 0) return;
    std::fill_n(found.weight.begin(), points.size, R(0));
    for (Index q = 0; q < tables_.terms; ++q) {
      next_tables();
      for (Index i = 0; i < points.size; ++i) found.weight[at(i)] += from_source[i] * to_receiver[i];
    }
  }

 private:
  const MigrationTables<R>& tables_;
};

/// Products with K columns, whose elements lie side by side. Traces are taken in groups, so that a piece of
/// the image, and of the tables of a source, stays in a cache for all of a group. A product has threads for
/// its traces. The adjoint has threads for the traces of a group, and then for the points, so that each sum
/// belongs to one thread.
template <Scalar T, Index K>
class MigrationLoops {
  using R = Real<T>;
  using Times = typename ArrivalTables<R>::Times;

 public:
  MigrationLoops(const MigrationTables<R>& tables, std::byte* scratch)
      : tables_(tables),
        arrival_tables_(tables),
        group_(group_of(tables)),
        margin_(tables.length),
        pairs_(reinterpret_cast<T*>(scratch)) {
    padded_ = pairs_ + threads_per_rank() * group_ * pairs_size();
    filtered_ = padded_ + threads_per_rank() * padded_size();
    image_ = filtered_ + threads_per_rank() * tables.samples * K;
    reversed_ = reinterpret_cast<R*>(image_ + tables.points * K);
    for (Index j = 0; j < tables.wavelets; ++j)
      std::reverse_copy(wavelet(j), wavelet(j + 1), reversed_ + j * tables.length);
  }
  static Index scratch_bytes(const MigrationTables<R>& tables) {
    const Index per_thread =
        (2 * group_of(tables) * tables.wavelets + 2) * tables.samples + 2 * tables.length;
    return (threads_per_rank() * per_thread + tables.points) * K * Index{sizeof(T)} +
           tables.wavelets * tables.length * Index{sizeof(R)};
  }

  void demigrate(bool adds, MatrixView<const T> image, MatrixView<T> data) {
    interleave(image);
    for_ranges(tables_.traces, 1, threads_for(operations(tables_.traces)), [&](int thread, Range traces) {
      for (Index first = traces.begin; first < traces.end(); first += group_) {
        const Range some{first, std::min(group_, traces.end() - first)};
        spread(some, pairs(thread * group_));
        for (Index i = 0; i < some.size; ++i) {
          const T* const filtered =
              convolve(arrival_tables_.times_of(first + i).arrivals, pairs(thread * group_ + i), thread);
          for (Index c = 0; c < K; ++c) {
            T* const samples = data.column(c) + (first + i) * tables_.samples;
            for (Index k = 0; k < tables_.samples; ++k)
              samples[k] = adds ? samples[k] + filtered[k * K + c] : filtered[k * K + c];
          }
        }
      }
    });
  }

  void migrate(MatrixView<const T> data, MatrixView<T> image) {
    std::fill_n(image_, tables_.points * K, T(0));
    const Index together = threads_per_rank() * group_;
    for (Index first = 0; first < tables_.traces; first += together) {
      const Index count = std::min(together, tables_.traces - first);
      const int threads = threads_for(operations(count));
      for_ranges(count, 1, threads, [&](int thread, Range traces) {
        for (Index i = traces.begin; i < traces.end(); ++i)
          correlate_with_wavelet(data.row_block({(first + i) * tables_.samples, tables_.samples}),
                                 arrival_tables_.times_of(first + i).arrivals, pairs(i), thread);
      });
      for_ranges(tables_.points, 64, threads, [&](int, Range points) {
        for (Index i = 0; i < count; i += group_)
          gather({first + i, std::min(group_, count - i)}, points, pairs(i));
      });
    }
    for (Index c = 0; c < K; ++c)
      for (Index i = 0; i < tables_.points; ++i) image(i, c) = image_[i * K + c];
  }

 private:
  double operations(Index traces) const {
    return static_cast<double>(traces) *
           static_cast<double>((5 + 2 * tables_.terms) * tables_.points +
                               tables_.samples * tables_.length * tables_.wavelets);
  }

  /// The traces whose pairs take up to half of a usual second-level cache.
  static Index group_of(const MigrationTables<R>& tables) {
    constexpr Index bytes = 1 << 19;
    const Index each = 2 * tables.samples * tables.wavelets * K * Index{sizeof(T)};
    return each == 0 ? 1 : std::clamp<Index>(bytes / each, 1, most_traces);
  }
  /// Of a trace: its pairs for one wavelet after the other.
  Index pairs_size() const { return 2 * tables_.samples * tables_.wavelets * K; }
  const R* wavelet(Index j) const { return tables_.wavelet + j * tables_.length; }
  Index padded_size() const { return (tables_.samples + 2 * margin_) * K; }
  T* pairs(Index i) const { return pairs_ + i * pairs_size(); }
  /// Sample k of a thread's trace with room for the wavelet before and after it.
  T* padded(int thread, Index k) const { return padded_ + thread * padded_size() + (margin_ + k) * K; }
  T* filtered(int thread) const { return filtered_ + thread * tables_.samples * K; }

  void interleave(MatrixView<const T> image) {
    for (Index c = 0; c < K; ++c)
      for (Index i = 0; i < tables_.points; ++i) image_[i * K + c] = image(i, c);
  }

  /// Pair k of each trace ← the sums of (1 − w) m and of w m, weighted, over the points that arrive in sample
  /// k.
  void spread(Range traces, T* pairs) {
    for (Index i = 0; i < traces.size; ++i) {
      const Range arrivals = arrival_tables_.times_of(traces.begin + i).arrivals;
      if (arrivals.size == 0) continue;
      T* const own = pairs + i * pairs_size();
      for (Index j = 0; j < tables_.wavelets; ++j) {
        T* const of_wavelet = own + 2 * K * j * tables_.samples;
        std::fill_n(of_wavelet + 2 * K * arrivals.begin, 2 * K * arrivals.size, T(0));
        std::fill_n(of_wavelet + 2 * K * (tables_.samples - 1), 2 * K, T(0));
      }
    }
    for_arrivals(traces, {0, tables_.points}, pairs, [&](auto weighs, auto some, Range piece) {
      const T* m = image_ + piece.begin * K;
      for (Index i = 0; i < piece.size; ++i, m += K) {
        for (const Visit& visit : some) {
          visit.fetch_ahead(i);
          T* const sums = visit.pairs + 2 * K * visit.found->place[at(i)];
          const R w = visit.found->behind[at(i)];
          for (Index c = 0; c < K; ++c) {
            const T all = weighs() ? visit.found->weight[at(i)] * m[c] : m[c], behind = w * all;
            sums[c] += all - behind;
            sums[K + c] += behind;
          }
        }
      }
    });
  }

  /// Returns the sum over the wavelets of wavelet ∗ the trace that its pairs represent.
  const T* convolve(Range arrivals, const T* pairs, int thread) {
    const Index samples = tables_.samples, length = tables_.length;
    const auto padded = [=, this](Index k) { return this->padded(thread, k); };
    T* const result = filtered(thread);
    Range wet{0, 0};  // samples that waves reach
    if (arrivals.size > 0) {
      const Index last = arrivals.end();
      wet = intersect(Range{arrivals.begin - tables_.centre, arrivals.size + length}, Range{0, samples});
      std::fill(padded(arrivals.begin - length), padded(arrivals.begin), T(0));
      std::fill(padded(last + 1), padded(last + 1 + length), T(0));
      for (Index j = 0; j < tables_.wavelets; ++j) {
        const auto pair = [=](Index k) { return pairs + 2 * K * (j * samples + k); };
        for (Index c = 0; c < K; ++c) padded(arrivals.begin)[c] = pair(arrivals.begin)[c];
        for (Index k = arrivals.begin + 1; k < last; ++k)
          for (Index c = 0; c < K; ++c) padded(k)[c] = pair(k)[c] + pair(k - 1)[K + c];
        for (Index c = 0; c < K; ++c) padded(last)[c] = pair(last - 1)[K + c];
        correlate(wet.size * K, T(1), reversed_ + j * length, length,
                  padded(wet.begin + tables_.centre - length + 1), K, T(j == 0 ? 0 : 1),
                  result + wet.begin * K);
      }
    }
    std::fill_n(result, wet.begin * K, T(0));
    std::fill(result + wet.end() * K, result + samples * K, T(0));
    return result;
  }

  /// Pair k ← (z(k), z(k + 1) − z(k)), where z is the correlation of the trace with the wavelet of the pairs.
  void correlate_with_wavelet(MatrixView<const T> trace, Range arrivals, T* pairs, int thread) {
    if (arrivals.size == 0) return;
    const auto padded = [=, this](Index k) { return this->padded(thread, k); };
    const Range needed{arrivals.begin - tables_.centre, arrivals.size + tables_.length};
    const Range recorded = intersect(needed, Range{0, tables_.samples});
    std::fill(padded(needed.begin), padded(recorded.begin), T(0));
    std::fill(padded(recorded.end()), padded(needed.end()), T(0));
    for (Index c = 0; c < K; ++c)
      for (Index k = recorded.begin; k < recorded.end(); ++k) padded(k)[c] = trace(k, c);
    for (Index j = 0; j < tables_.wavelets; ++j, pairs += 2 * K * tables_.samples) {
      std::fill_n(pairs + 2 * K * (tables_.samples - 1), 2 * K, T(0));
      correlate((arrivals.size + 1) * K, T(1), wavelet(j), tables_.length, padded(needed.begin), K, T(0),
                filtered(thread));
      for (Index k = 0; k < arrivals.size; ++k) {
        const T* const z = filtered(thread) + k * K;
        T* const pair = pairs + 2 * K * (arrivals.begin + k);
        for (Index c = 0; c < K; ++c) {
          pair[c] = z[c];
          pair[K + c] = z[K + c] - z[c];
        }
      }
    }
  }

  /// mᵢ ← mᵢ + (1 − w) z(k) + w z(k + 1), weighted, for these points and traces, where point i arrives in
  /// sample k.
  void gather(Range traces, Range points, T* pairs) {
    for_arrivals(traces, points, pairs, [&](auto weighs, auto some, Range piece) {
      T* m = image_ + piece.begin * K;
      for (Index i = 0; i < piece.size; ++i, m += K) {
        std::array<T, at(K)> sums;
        for (std::size_t k = 0; k < some.size(); ++k) {
          const Visit& visit = some[k];
          visit.fetch_ahead(i);
          const T* const z = visit.pairs + 2 * K * visit.found->place[at(i)];
          const R w = visit.found->behind[at(i)];
          for (Index c = 0; c < K; ++c) {
            const T unweighted = z[c] + w * z[K + c];
            const T value = weighs() ? visit.found->weight[at(i)] * unweighted : unweighted;
            sums[at(c)] = k == 0 ? value : sums[at(c)] + value;
          }
        }
        for (Index c = 0; c < K; ++c) m[c] += sums[at(c)];
      }
    });
  }

  /// Of a trace: its pairs, how a piece of the image arrives, and the tables that are fetched into a cache
  /// meanwhile, because processors do not foresee which come next.
  struct Visit {
    const Arrivals<R>* found;
    T* pairs;
    const R *from_source, *to_receiver;
    Index points_ahead;

    void fetch_ahead(Index point) const {
      constexpr Index line = 64 / Index{sizeof(R)};
      if (point % line != 0 || point >= points_ahead) return;
      __builtin_prefetch(from_source + point);
      __builtin_prefetch(to_receiver + point);
    }
  };
  /// Calls work(weighs, visits, piece) for each piece of the points and a few of the traces at a time;
  /// `pairs` are those of the first trace.
  template <class Work>
  void for_arrivals(Range traces, Range points, T* pairs, const Work& work) const {
    std::array<Times, at(most_traces)> times;
    std::array<T*, at(most_traces)> pairs_of;
    std::size_t reached = 0;
    for (Index i = 0; i < traces.size; ++i) {
      times[reached] = arrival_tables_.times_of(traces.begin + i);
      pairs_of[reached] = pairs + i * pairs_size();
      if (times[reached].arrivals.size > 0) ++reached;
    }
    std::array<Arrivals<R>, traces_at_once> found;
    const auto piece_from = [=](Index begin) {
      return Range{begin, std::min(points_at_once, points.end() - begin)};
    };
    for (Index begin = points.begin; begin < points.end(); begin += points_at_once) {
      const Range piece = piece_from(begin);
      const auto visit = [&]<std::size_t N>(std::integral_constant<std::size_t, N>, std::size_t first) {
        std::array<Visit, N> visits;
        for (std::size_t k = 0; k < N; ++k) {
          arrival_tables_.find(found[k], times[first + k], piece);
          const bool is_last = first + N + k >= reached;
          const Times& next = times[is_last ? k : first + N + k];
          const Range ahead = is_last ? piece_from(piece.end()) : piece;
          visits[k] = {&found[k], pairs_of[first + k], next.from_source + ahead.begin,
                       next.to_receiver + ahead.begin, ahead.size};
        }
        tables_.terms > 0 ? work(std::true_type(), visits, piece) : work(std::false_type(), visits, piece);
      };
      std::size_t k = 0;
      for (; k + traces_at_once <= reached; k += traces_at_once)
        visit(std::integral_constant<std::size_t, traces_at_once>(), k);
      for (; k < reached; ++k) visit(std::integral_constant<std::size_t, 1>(), k);
    }
  }

  const MigrationTables<R>& tables_;
  const ArrivalTables<R> arrival_tables_;
  const Index group_, margin_;
  T *pairs_, *padded_, *filtered_, *image_;
  R* reversed_;
};

/// Calls work(loops, columns) for all columns, several or one at a time.
template <Scalar T, class Work>
void for_columns(const MigrationTables<Real<T>>& tables, std::byte* scratch, Index columns, Work&& work) {
  constexpr Index several = columns_at_once<T>;
  Index begin = 0;
  for (; columns - begin >= several; begin += several)
    work(MigrationLoops<T, several>(tables, scratch), Range{begin, several});
  for (; begin < columns; ++begin) work(MigrationLoops<T, 1>(tables, scratch), Range{begin, 1});
}

}  // namespace

template <Scalar T>
Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns) {
  const Index one = MigrationLoops<T, 1>::scratch_bytes(tables);
  return columns < columns_at_once<T>
             ? one
             : std::max(one, MigrationLoops<T, columns_at_once<T>>::scratch_bytes(tables));
}

template <Scalar T>
void demigrate(const MigrationTables<Real<T>>& tables, bool adds, MatrixView<const T> image,
               MatrixView<T> data, std::byte* scratch) {
  const AtWork at_work;
  for_columns<T>(tables, scratch, data.cols, [&](auto loops, Range columns) {
    loops.demigrate(adds, image.col_block(columns), data.col_block(columns));
  });
}

template <Scalar T>
void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
             std::byte* scratch) {
  const AtWork at_work;
  for_columns<T>(tables, scratch, data.cols, [&](auto loops, Range columns) {
    loops.migrate(data.col_block(columns), image.col_block(columns));
  });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template Index migration_scratch_bytes<T>(const MigrationTables<Real<T>>&, Index);                 \
  template void demigrate(const MigrationTables<Real<T>>&, bool, MatrixView<const T>, MatrixView<T>, \
                          std::byte*);                                                               \
  template void migrate(const MigrationTables<Real<T>>&, MatrixView<const T>, MatrixView<T>, std::byte*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
