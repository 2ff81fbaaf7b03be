"""One plot as SVG text: grouped bars or lines, error bars, published figures as marks; for light and dark pages.

Knows nothing of results or tables: see draw_plot for what it takes.
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 72, 20, 84, 60
NUM_COLOURS = 7

# Mid-tones have a contrast of 3 or more against white and against a dark page's #0d1117. So the plot is readable in
# viewers that do not know the page's scheme; text and marks are stronger in those that do.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #6e7781 }
  .title { font-size: inherit; font-weight: 600 }
  .axis { stroke: #6e7781; fill: none } .grid { stroke: #6e7781; stroke-opacity: 0.35 }
  .error { stroke: #6e7781; stroke-width: 1.5; fill: none }
  .published { stroke: #24292f; stroke-width: 1.5; fill: #ffffff }
  .c0 { fill: #2f7ed8; stroke: #2f7ed8 } .c1 { fill: #c2601c; stroke: #c2601c } .c2 { fill: #2f8f4e; stroke: #2f8f4e }
  .c3 { fill: #9a5fc9; stroke: #9a5fc9 } .c4 { fill: #a87d00; stroke: #a87d00 } .c5 { fill: #c0477f; stroke: #c0477f }
  .c6 { fill: #1f8a92; stroke: #1f8a92 }
  .line { fill: none; stroke-width: 2 } .level { stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: light) { text { fill: #24292f } .error { stroke: #24292f } }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .error { stroke: #e6edf3 } }
"""


class Scale:
    """Maps values to heights: from zero, or by powers of ten."""

    def __init__(self, values, logarithmic):
        self.logarithmic = logarithmic
        if logarithmic:
            positive = [v for v in values if v > 0] or [1.0]
            self.low, self.high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
            if self.low == self.high:
                self.high += 1
            self.ticks = [10.0**p for p in range(self.low, self.high + 1)]
            return
        top = max([v for v in values if v > 0], default=1.0)
        step = 10 ** math.floor(math.log10(top / 4))
        step *= next(f for f in (1, 2, 5, 10) if top / (step * f) <= 6)
        self.low, self.high = 0, math.ceil(top / step - 1e-9) * step
        self.ticks = [i * step for i in range(round(self.high / step) + 1)]

    def y(self, value):
        if self.logarithmic:
            value = math.log10(value) if value > 0 else self.low
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def text(x, y, content, anchor="middle", kind=None, turn=None):
    extra = (f' class="{kind}"' if kind else "") + (f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def diamond(x, y):
    return f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z" class="published"/>'


def error_bar(x, mean, deviation, scale):
    if deviation is None:
        return []
    low, high = scale.y(mean - deviation), scale.y(mean + deviation)
    return [f'<path d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8" class="error"/>']


def bars(columns, series, scale, centre, step):
    out = []
    for column in columns:
        rows = [(i, row) for i, row in enumerate(series) if column in series[row]]
        width = min(56.0, 0.72 * step / max(1, len(rows)))
        for place, (colour, row) in enumerate(rows):
            mean, deviation, published = series[row][column]
            x = centre(column) + (place - (len(rows) - 1) / 2) * width
            if mean is not None:
                top = scale.y(mean)
                out.append(f'<rect x="{x - 0.45 * width:.1f}" y="{top:.1f}" width="{0.9 * width:.1f}" '
                           f'height="{HEIGHT - BOTTOM - top:.1f}" class="c{colour % NUM_COLOURS}"/>')
                out += error_bar(x, mean, deviation, scale)
            if published is not None:
                out.append(diamond(x, scale.y(published)))
    return out


def lines(columns, series, scale, centre):
    out = []
    for colour, row in enumerate(series):
        kind = f"c{colour % NUM_COLOURS}"
        points = [(column, *series[row][column]) for column in columns if column in series[row]]
        drawn = [(centre(c), mean, deviation) for c, mean, deviation, _ in points if mean is not None]
        if len(series[row]) > 1 and drawn:
            out.append('<polyline points="' + " ".join(f"{x:.1f},{scale.y(m):.1f}" for x, m,
            _ in drawn) + f'" class="{kind} line"/>')
        for x, mean, deviation in drawn:
            out += error_bar(x, mean, deviation, scale)
            out.append(f'<circle cx="{x:.1f}" cy="{scale.y(mean):.1f}" r="4" class="{kind}"/>')
        out += [diamond(centre(c), scale.y(published)) for c, _, _, published in points if published is not None]
        # The others are compared with this row, whatever their column.
        if len(series[row]) == 1 and drawn and len(columns) > 1:
            out.append(line(LEFT, scale.y(drawn[0][1]), WIDTH - RIGHT, scale.y(drawn[0][1]), f"{kind} line level"))
    return out


def legend(series, has_published):
    out, x, y = [], float(LEFT), 56.0
    for colour, row in enumerate(series):
        if x > LEFT and x + 18 + 7.5 * len(row) > WIDTH - RIGHT:  # another line
            x, y = float(LEFT), y + 18
        out += [f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" class="c{colour % NUM_COLOURS}"/>',
        text(x + 18, y + 1, row, "start")]
        x += 40 + 7.5 * len(row)
    if has_published:
        out += [diamond(x + 6, y - 4), text(x + 18, y + 1, "published", "start")]
    return out


def draw_plot(plot, title, y_title, x_title, columns, series):
    """The SVG. `plot`: {"kind": "bars" or "lines", "log": bool}; `series`: {row: {column: (mean, deviation,
    published)}}, None for what is missing. In a plot of lines a row of one column is drawn as a level
    through all of them."""
    values = [v for row in series.values() for mean, deviation, published in row.values()
              for v in (mean, None if mean is None else mean + (deviation or 0), published) if v is not None]
    scale = Scale(values, plot.get("log", False))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(columns))

    def centre(column):
        return LEFT + (columns.index(column) + 0.5) * step

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    f'aria-label="{escape(title, {chr(34): "&quot;"})}">',
           f"<style>{STYLE}</style>",
           # The title is at most as wide as the plot: bold letters are about 0.6 of their size wide.
           f'<g style="font-size: {min(16.0, (WIDTH - LEFT - RIGHT) / (0.6 * max(1, len(title)))):.1f}px">'
           f'{text(LEFT, 28, title, "start", "title")}</g>']
    out += legend(series, any(p is not None for row in series.values() for _, _, p in row.values()))
    for tick in scale.ticks:
        out += [line(LEFT, scale.y(tick), WIDTH - RIGHT, scale.y(tick), "grid"),
                text(LEFT - 8, scale.y(tick) + 4, f"{tick:g}", "end")]
    is_lines = plot["kind"] == "lines"
    out += lines(columns, series, scale, centre) if is_lines else bars(columns, series, scale, centre, step)
    out.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" class="axis"/>')
    out += [text(centre(column), HEIGHT - BOTTOM + 20, column) for column in columns]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_title),
            text(20, (TOP + HEIGHT - BOTTOM) / 2, y_title, turn=-90)]
    return "\n".join(out) + "\n</svg>\n"
