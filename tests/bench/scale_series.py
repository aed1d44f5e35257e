"""Costs by size, how they grow, and whether that is linear or better."""

import math
from dataclasses import dataclass

# A growth with this exponent or less counts as linear: the rest is noise, and cache misses of larger tables.
LINEAR = 1.1


@dataclass(frozen=True)
class Metric:
    """One kind of cost; its key names the chart's file."""

    key: str
    title: str
    # The noun of the sizes, such as "tools", and the number of them that the column "per unit" divides by.
    sizes: str
    kind: str  # "time" in seconds or "memory" in bytes
    unit: int = 1
    # Excludes the cost of the smallest size from the exponent, where it consists of something else.
    beyond_first: bool = False
    # A size, and the share by which it may cost more than the smallest one.
    most_above: tuple[int, float] | None = None
    # False for a cost that is not expected to grow: then it is not divided by the size.
    grows: bool = True


@dataclass
class Series:
    """The costs that one server has with increasing sizes."""

    metric: Metric
    server: str
    sizes: list[int]
    costs: list[float]
    # The share by which the size of `most_above` costs more than the smallest one, where the two were compared.
    above: float | None = None
    # The same for a second server of the smallest size: the noise of the comparison.
    noise: float | None = None

    def exponent(self):
        if self.metric.beyond_first:
            return exponent(self.sizes[1:], [cost - self.costs[0] for cost in self.costs[1:]])
        return exponent(self.sizes, self.costs)

    def is_linear(self):
        power = self.exponent()
        return power is not None and power <= LINEAR

    def growth(self, at):
        """Returns the factors by which cost and size have grown since the size before; None for a cost of nothing."""
        if at == 0 or self.costs[at - 1] <= 0:
            return None
        return self.costs[at] / self.costs[at - 1], self.sizes[at] / self.sizes[at - 1]


def exponent(sizes, costs):
    """Returns the slope of log cost over log size in the upper half of the sizes; None where costs are not positive.

    It is 1 for a linear cost, 2 for a quadratic one, and 0 for one that does not grow."""
    half = len(sizes) // 2
    pairs = zip(sizes[half:], costs[half:], strict=True)
    upper = [(math.log(size), math.log(cost)) for size, cost in pairs if cost > 0]
    if len(upper) < 2:
        return None
    middle_x = sum(x for x, _ in upper) / len(upper)
    middle_y = sum(y for _, y in upper) / len(upper)
    spread = sum((x - middle_x) ** 2 for x, _ in upper)
    return sum((x - middle_x) * (y - middle_y) for x, y in upper) / spread


def line(sizes, costs):
    """Returns a and b of cost = a + b · size, with the least squares of relative errors; None without two costs."""
    points = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if cost > 0]
    if len(points) < 2:
        return None
    # Each equation a + b · size = cost is divided by its cost.
    ones = sum(1 / cost**2 for _, cost in points)
    firsts = sum(size / cost**2 for size, cost in points)
    squares = sum((size / cost) ** 2 for size, cost in points)
    right, right_sizes = sum(1 / cost for _, cost in points), sum(size / cost for size, cost in points)
    determinant = ones * squares - firsts**2
    return (
        (right * squares - right_sizes * firsts) / determinant,
        (ones * right_sizes - firsts * right) / determinant,
    )


def show(kind, value, digits=3):
    """Returns a time or a number of bytes, rounded, with its unit."""
    units = TIMES if kind == "time" else BYTES
    factor, name = next((unit for unit in reversed(units) if abs(value) >= unit[0]), units[0])
    return f"{float(f'{value / factor:.{digits}g}'):g} {name}"


TIMES = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1, "s")]
BYTES = [(1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]


def show_size(metric, size):
    """Returns a size as a table shows it: payloads in powers of 1,024."""
    if metric.sizes != "payload":
        return f"{size:,}"
    power = next(power for power in (2, 1, 0) if size >= 1024**power)
    return f"{size // 1024**power} {('B', 'KiB', 'MiB')[power]}"
