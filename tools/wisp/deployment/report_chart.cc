#include <algorithm>
#include <cmath>

#include "tools/wisp/deployment/report_page.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

// The picture's own units; it is as wide as a small phone.
constexpr double kWidth = 360, kHeight = 210, kLeft = 44, kRight = 10, kTop = 12, kBottom = 40;

// Returns 1, 2 or 5 times a power of ten, so that the axis has three to six steps.
double MakeStep(double range) {
  const double rough = range / 4, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string Number(double value) {
  std::string text = Fixed(value, 3);
  while (text.find('.') != std::string::npos && (text.back() == '0' || text.back() == '.')) {
    const bool point = text.back() == '.';
    text.pop_back();
    if (point) break;
  }
  return text == "-0" ? "0" : text;
}

class Picture {
 public:
  explicit Picture(const Chart& chart) : c_(chart) {}

  std::string Draw() {
    text_ = "<svg viewBox=\"0 0 360 210\" role=\"img\" aria-label=\"" + Escaped(c_.title) + "\">\n";
    Axes();
    for (const Chart::Line& line : c_.lines) Draw(line);
    for (const Chart::Point& point : c_.points) Draw(point);
    return text_ + "</svg>\n";
  }

 private:
  std::string X(double x) const { return Fixed(kLeft + x / c_.width * (kWidth - kLeft - kRight), 1); }
  std::string Y(double y) const {
    const double share = (y - c_.bottom) / (c_.top - c_.bottom);
    return Fixed(kHeight - kBottom - std::clamp(share, 0.0, 1.0) * (kHeight - kTop - kBottom), 1);
  }
  void Stroke(const std::string& style, const std::string& x1, const std::string& y1, const std::string& x2,
              const std::string& y2) {
    text_ +=
        "<line class=\"" + style + "\" x1=\"" + x1 + "\" y1=\"" + y1 + "\" x2=\"" + x2 + "\" y2=\"" + y2 + "\"/>\n";
  }
  void Label(const std::string& x, const std::string& y, const char* anchor, const std::string& text) {
    text_ += "<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"" + anchor + "\">" + Escaped(text) + "</text>\n";
  }

  void Axes() {
    const double step = MakeStep(c_.top - c_.bottom);
    for (double y = std::ceil(c_.bottom / step - 1e-9) * step; y <= c_.top + 1e-9; y += step) {
      Stroke("grid", X(0), Y(y), X(c_.width), Y(y));
      Label(Fixed(kLeft - 4, 0), Fixed(std::stod(Y(y)) + 3.5, 1), "end", Number(y));
    }
    const double wide = std::max(1.0, MakeStep(c_.width));
    for (double x = 0; x <= c_.width + 1e-9; x += wide)
      Label(X(x), Fixed(kHeight - kBottom + 14, 0), "middle", Number(x));
    Label(X(c_.width / 2), Fixed(kHeight - 8, 0), "middle", c_.x_name);
    Label("4", "9", "start", c_.y_name);
  }

  void Draw(const Chart::Line& line) {
    text_ += "<polyline class=\"" + std::string(line.style) + "\" points=\"";
    for (const auto& [x, y] : line.points) text_ += X(x) + "," + Y(y) + " ";
    text_ += "\"><title>" + Escaped(line.name) + "</title></polyline>\n";
  }

  void Draw(const Chart::Point& p) {
    Stroke(std::string("bar ") + p.style, X(p.x), Y(p.y - p.error), X(p.x), Y(p.y + p.error));
    text_ += "<circle class=\"" + std::string(p.style) + "\" cx=\"" + X(p.x) + "\" cy=\"" + Y(p.y) +
             "\" r=\"3\"><title>" + Escaped(p.name) + "</title></circle>\n";
  }

  const Chart& c_;
  std::string text_;
};

}  // namespace

std::string ToSvg(const Chart& chart) { return Picture(chart).Draw(); }

}  // namespace wisp::tools
