"""The arithmetic and the charts of `make bench-scale`."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

from scale_chart import chart
from scale_series import Metric, Series, exponent, line, show, show_size

SIZES = [1, 10, 100, 1_000, 10_000]
TIME = Metric("calls", "Time of <calls>", "tools", "time")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("cost", "power"),
    [(lambda n: 3.0, 0), (lambda n: 3.0 * n, 1), (lambda n: 0.1 * n**2, 2), (lambda n: n**0.5, 0.5)],
    ids=["constant", "linear", "quadratic", "root"],
)
def test_the_exponent_is_the_power_of_the_growth(cost, power):
    assert exponent(SIZES, [cost(size) for size in SIZES]) == pytest.approx(power)


def test_the_exponent_is_that_of_the_upper_half():
    assert exponent([1, 10, 100, 1_000], [1.0, 100.0, 100.0, 1_000.0]) == pytest.approx(1)


def test_the_exponent_leaves_out_costs_of_nothing():
    assert exponent(SIZES, [0, 0, 0, 10.0, 100.0]) == pytest.approx(1)
    assert exponent(SIZES, [5.0, 5.0, 0, 0, 100.0]) is None
    assert exponent([1], [1.0]) is None


@pytest.mark.parametrize(("power", "verdict"), [(0.9, True), (1.09, True), (1.11, False)])
def test_a_cost_is_linear_up_to_an_exponent_of_1_1(power, verdict):
    assert Series(TIME, "Python", SIZES, [size**power for size in SIZES]).is_linear() == verdict


def test_a_series_without_an_exponent_is_not_linear():
    assert not Series(TIME, "Python", SIZES, [0.0] * 5).is_linear()


def test_the_cost_of_the_smallest_size_can_be_left_out():
    beyond = Metric("start", "Start", "tools", "time", beyond_first=True)
    costs = [100 + (size - 1) ** 1.0 for size in SIZES]
    assert Series(TIME, "Python", SIZES, costs).exponent() < 0.99
    assert Series(beyond, "Python", SIZES, costs).exponent() == pytest.approx(1, abs=0.01)


def test_a_line_is_fitted_to_relative_errors():
    fixed, each = line(SIZES, [7 + 2.0 * size for size in SIZES])
    assert (fixed, each) == (pytest.approx(7), pytest.approx(2))
    # The error of the largest cost does not move the line away from the others.
    fixed, _ = line(SIZES, [9.0, 27.0, 207.0, 2_007.0, 22_000.0])
    assert fixed == pytest.approx(7, abs=1)
    assert line(SIZES, [0, 0, 0, 0, 1.0]) is None


def test_growth_is_by_cost_and_size():
    series = Series(TIME, "Python", [1, 10, 50], [0.0, 2.0, 6.0])
    assert [series.growth(at) for at in range(3)] == [None, None, (3.0, 5.0)]


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("time", 0.0, "0 ns"),
        ("time", 2.5e-7, "250 ns"),
        ("time", 0.01234, "12.3 ms"),
        ("time", 75, "75 s"),
        ("memory", 999.6, "1000 B"),
        ("memory", 7_340, "7.34 kB"),
        ("memory", -4_096, "-4.1 kB"),
    ],
)
def test_costs_are_shown_with_three_digits_and_a_unit(kind, value, shown):
    assert show(kind, value) == shown


def test_payloads_are_shown_in_powers_of_1024():
    payload = Metric("payload", "Payload", "payload", "time")
    assert [show_size(payload, size) for size in (16, 1 << 16, 1 << 24)] == ["16 B", "64 KiB", "16 MiB"]
    assert show_size(TIME, 10_000) == "10,000"


def test_a_chart_draws_each_cost_in_its_order():
    quick = Series(TIME, "Python", SIZES, [1e-6 * size for size in SIZES])
    slow = Series(TIME, "Node", SIZES, [0, *(1e-5 * size for size in SIZES[1:])])
    text = chart([quick, slow])
    assert len(text) < 20_000
    picture = ElementTree.fromstring(text)
    assert picture.findtext(f"{SVG}title") == "Time of <calls>"
    lines = picture.findall(f"{SVG}polyline")
    points = [[tuple(map(float, pair.split(","))) for pair in one.get("points").split()] for one in lines]
    assert [len(one) for one in points] == [5, 4]  # logarithms have no place for the cost of nothing
    for one in points:
        assert [x for x, _ in one] == sorted(x for x, _ in one)
        assert [y for _, y in one] == sorted((y for _, y in one), reverse=True)
    # A linear cost is a straight line, and tenfold costs are as far apart everywhere.
    heights = [upper[1] - lower[1] for lower, upper in zip(points[0][1:], points[1], strict=True)]
    assert heights == pytest.approx([heights[0]] * 4, abs=0.2)
    labels = [label.text for label in picture.findall(f"{SVG}text")]
    assert {"1", "10,000", "tools, logarithmic", "time, logarithmic", "Python", "Node", "1 ms"} <= set(labels)


def test_a_chart_of_nothing_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        chart([Series(TIME, "Python", SIZES, [0.0] * 5)])


def test_labels_of_lines_that_end_together_do_not_overlap():
    same = [Series(TIME, name, [1, 10], [1e-3, 2e-3]) for name in ("Python", "Node", "Rust")]
    picture = ElementTree.fromstring(chart(same))
    heights = [
        float(label.get("y")) for label in picture.findall(f"{SVG}text") if label.text in ("Python", "Node", "Rust")
    ]
    assert min(abs(one - other) for at, one in enumerate(heights) for other in heights[:at]) >= 14
