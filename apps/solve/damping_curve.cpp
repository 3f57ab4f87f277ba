// SPDX-License-Identifier: BSD-3-Clause
#include "solve/damping_curve.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops::program {

const char* merit_name(DampingRule rule) {
  return rule == DampingRule::lcurve ? "curvature" : rule == DampingRule::gcv ? "gcv" : "";
}

std::string curve_text(const DampingCurve& curve) {
  const std::string merit = merit_name(curve.rule);
  std::string text = fmt::format("{:>12}  {:>12}  {:>12}", "D", "|B - A X|", "|X|");
  if (!merit.empty()) text += fmt::format("  {:>12}", merit);
  text += "  verdict\n";
  for (std::size_t k = 0; k < curve.points.size(); ++k) {
    const CurvePoint& point = curve.points[k];
    text += fmt::format("{:>12.4e}  {:>12.4e}  {:>12.4e}", point.damp, point.residual_norm, point.x_norm);
    if (!merit.empty())
      text += fmt::format("  {:>12}", std::isnan(point.merit) ? "-" : fmt::format("{:.4e}", point.merit));
    const bool is_chosen = curve.chosen == static_cast<Index>(k);
    text += fmt::format("  {}{}\n", name_of(point.reason),
                        is_chosen ? fmt::format(", chosen by {}", name_of(curve.rule)) : "");
  }
  return text;
}

void write_curve(Communicator& world, const std::string& path, const DampingCurve& curve) {
  if (path.empty()) return;
  attempt(world, [&] {
    if (world.rank() != 0) return;
    const std::string merit = merit_name(curve.rule);
    std::string rows = "damp,residual_norm,x_norm,reason,chosen" + (merit.empty() ? "" : "," + merit) + "\n";
    for (std::size_t k = 0; k < curve.points.size(); ++k) {
      const CurvePoint& point = curve.points[k];
      rows += fmt::format("{},{},{},{},{}", point.damp, point.residual_norm, point.x_norm,
                          name_of(point.reason), curve.chosen == static_cast<Index>(k) ? 1 : 0);
      if (!merit.empty()) rows += fmt::format(",{}", point.merit);
      rows += "\n";
    }
    write_text_file(path, [&rows] { return std::exchange(rows, {}); });
  });
}

}  // namespace gridlops::program
