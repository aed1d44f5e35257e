"""Charts of costs by size as SVG: both axes logarithmic, readable on light and dark backgrounds."""

import math
from html import escape

from scale_series import show, show_size

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 90, 44, 52
COLOURS = ("#2f81f7", "#d9730d", "#2da44e", "#a371f7")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #57606a; }
.title { font-size: 14px; font-weight: 600; }
.grid { stroke: #8c959f; stroke-opacity: 0.3; }
.guide { stroke: #8c959f; stroke-dasharray: 4 4; }
@media (prefers-color-scheme: dark) { text { fill: #b1bac4; } }
"""


def chart(series):
    """Returns a chart of all series of one metric. Costs of nothing are left out, as logarithms have no zero."""
    metric = series[0].metric
    points = [[(size, cost) for size, cost in zip(one.sizes, one.costs, strict=True) if cost > 0] for one in series]
    drawn = [point for line in points for point in line]
    if not drawn:
        raise ValueError(f"{metric.key}: a chart needs a cost above 0")
    place = Place(drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(metric.title)}</title>",
        f"<style>{STYLE}</style>",
        text(LEFT, 20, metric.title, extra=' class="title"'),
        *axes(metric, sorted({size for one in series for size in one.sizes}), place),
        *guide(max(points, key=lambda line: line[-1][1] if line else 0)[-1], place),
    ]
    ends = spread([(place.y(line[-1][1]), at) for at, line in enumerate(points) if line])
    for at, line in enumerate(points):
        if line:
            parts += curve(line, COLOURS[at % len(COLOURS)], place)
            parts.append(text(WIDTH - RIGHT + 8, ends[at] + 4, series[at].server, fill=COLOURS[at % len(COLOURS)]))
    return "\n".join([*parts, "</svg>", ""])


class Place:
    """Returns the position of a size and a cost. The y axis spans whole decades."""

    def __init__(self, points):
        sizes, costs = [size for size, _ in points], [cost for _, cost in points]
        self.left, self.right = math.log10(min(sizes)), math.log10(max(sizes))
        if self.left == self.right:
            self.right += 1
        self.low, self.high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
        if self.low == self.high:
            self.high += 1

    def x(self, size):
        share = (math.log10(size) - self.left) / (self.right - self.left)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, cost):
        share = (math.log10(cost) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def axes(metric, sizes, place):
    for decade in range(place.low, place.high + 1):
        y = place.y(10.0**decade)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield text(LEFT - 8, y + 4, show(metric.kind, 10.0**decade * 1.001, digits=1), extra=' text-anchor="end"')
    for size in sizes:
        x = place.x(size)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield text(x, HEIGHT - BOTTOM + 18, show_size(metric, size), extra=' text-anchor="middle"')
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield text(middle, HEIGHT - 10, f"{metric.sizes}, logarithmic", extra=' text-anchor="middle"')
    turned = f' text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2:.0f})"'
    yield text(14, HEIGHT / 2, f"{metric.kind}, logarithmic", extra=turned)


def guide(end, place):
    """Draws a dashed line of linear growth through the last point, down to the edge of the chart."""
    size, cost = end
    # The cost falls by as many decades as the size, until one of the two axes ends.
    decades = min(math.log10(size) - place.left, math.log10(cost) - place.low)
    start_size, start_cost = size / 10**decades, cost / 10**decades
    yield (
        f'<line class="guide" x1="{place.x(start_size):.1f}" y1="{place.y(start_cost):.1f}" '
        f'x2="{place.x(size):.1f}" y2="{place.y(cost):.1f}"/>'
    )
    yield f'<line class="guide" x1="{WIDTH - 200}" x2="{WIDTH - 172}" y1="{HEIGHT - 14}" y2="{HEIGHT - 14}"/>'
    yield text(WIDTH - 166, HEIGHT - 10, "linear growth")


def curve(points, colour, place):
    path = " ".join(f"{place.x(size):.1f},{place.y(cost):.1f}" for size, cost in points)
    yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>'
    for size, cost in points:
        yield f'<circle cx="{place.x(size):.1f}" cy="{place.y(cost):.1f}" r="3.5" fill="{colour}"/>'


def spread(ends):
    """Returns the heights of the labels by their index, 14 pixels apart where lines end close to each other."""
    heights, last = {}, -math.inf
    for y, at in sorted(ends):
        last = max(y, last + 14)
        heights[at] = last
    return heights


def text(x, y, words, extra="", fill=None):
    style = f' style="fill: {fill}"' if fill else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}{style}>{escape(words)}</text>'
