"""The page that tells the results of `make bench-scale`: tables, verdicts and the machine."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

from common import ROOT
from scale_chart import chart
from scale_series import LINEAR, line, show, show_size

HEAD = ["server", "size", "cost", "per unit", "growth", "goal", "verdict"]
SECTIONS = {
    "tools": (
        "Registered tools",
        "Servers over stdio with as many tools, each with a description and two parameters. Five servers of each size "
        "are started. `tools/list` reads all pages of 100 tools. The calls are `echo`, one at a time, of the tool that "
        "was registered last; lots of 200 calls take turns between the sizes. The processor time of a call is that of "
        "all threads of the server. It is more exact than the time, which varies with the order in which threads run. "
        "What 1,000 tools cost a call is the median over 30 pairs of servers.",
    ),
    "sessions": (
        "Sessions over HTTP",
        "Sessions of revision 2025-11-25, opened over one connection, without a stream. Opening is `initialize` and "
        "`notifications/initialized`. It is measured, as calls of `echo` are, with all sessions open.",
    ),
    "streams": (
        "Listen streams",
        "`subscriptions/listen` requests of revision 2026-07-28, each on its own connection. Then a tool changes the "
        "list of tools; the time ends when the client has read the notification of the last stream.",
    ),
    "flight": (
        "Calls in flight",
        "Calls of an asynchronous tool that return once as many of them are waiting as the size says. The memory is "
        "that of the server while all of them wait. The time ends when the client has read the last response.",
    ),
    "payload": (
        "Payloads",
        "Calls of `echo`, one at a time, with messages and bodies allowed up to 64 MiB. The cost per unit is per MiB.",
    ),
}
# Why a cost grows faster; shown only where it does.
REASONS = {
    "streams-change": "all functions become slower alike, as where data exceeds the processor's caches; the number of "
    "instructions for a stream does not grow (callgrind).",
    "flight-time-http": {
        "Python": "its garbage collection visits the coroutines that wait: a call takes 6 % more instructions at 1,000 "
        "than at 100 (callgrind), and none of them in the core. The rest is that all functions become slower alike, as "
        "where data exceeds the processor's caches.",
        "Node": "all functions become slower alike, as where data exceeds the processor's caches; the number of steps "
        "for a call stays the same.",
    },
    "payload": "the allocator gives the memory of a large message back to the system after 10 ms, so the next message "
    "pays for cleared pages. That is a step between 1 and 16 MiB and does not go on: a copy is cleared once at most.",
}


def reason(series):
    found = next((entry for key, entry in REASONS.items() if series.metric.key.startswith(key)), None)
    return found.get(series.server) if isinstance(found, dict) else found


def rows(series):
    """Returns a series' rows of a table; the last one has the goal and the verdict."""
    metric = series.metric
    for at, (size, cost) in enumerate(zip(series.sizes, series.costs, strict=True)):
        grown = series.growth(at)
        is_last = at == len(series.sizes) - 1
        goal, verdict = goals(series)[0] if is_last else ("", "")
        yield [
            series.server,
            show_size(metric, size),
            show(metric.kind, cost),
            show(metric.kind, cost / size * metric.unit) if metric.grows else "–",
            f"× {grown[0]:.3g} for × {grown[1]:.3g}" if grown else "",
            goal,
            verdict,
        ]


def goals(series):
    """Returns the goals of a series, each with its verdict."""
    power = series.exponent()
    shown = "no figure" if power is None else f"exponent {round(power, 2) + 0.0:.2f}"
    found = [("linear or better", f"{shown}, {'met' if series.is_linear() else 'UNMET'}")]
    if series.metric.most_above and series.above is not None:
        size, most = series.metric.most_above
        words = f"{series.above * 100:+.1f} %, {'met' if series.above < most else 'UNMET'}"
        goal = f"{size:,} tools cost a call less than {most * 100:g} %"
        found.append((goal, f"{words} (another server with 1 tool: {series.noise * 100:+.1f} %)"))
    return found


def page_and_charts(found):
    """Returns the page and the charts by file name, of the series by dimension and metric."""
    charts = {f"{series[0].metric.key}.svg": chart(series) for of in found.values() for series in of}
    parts = [
        "# How cost grows",
        "`make bench-scale` measures what tools, sessions, listen streams, calls in flight and payloads cost as their "
        "number grows, with a server in each language, and writes this page.",
        f"Measured on {datetime.date.today():%d %B %Y} with {machine()}.",
        f"**How it is judged:** a cost is linear or better if its exponent is at most {LINEAR:g}: the slope of log "
        "cost over log size, by least squares over the upper half of the sizes. 1 is linear, 0 does not grow; the "
        "margin is for noise and for the caches that larger data misses. From the time of a start, that with one tool "
        "is subtracted first. Times are medians. Memory is what the server occupies beyond its memory before. Where "
        "calls are made one at a time, client and servers share one processor, so that a call costs its work and not "
        "the time to wake up another processor.",
        summary(found),
        *(part for dimension, of in found.items() for part in section(dimension, of)),
    ]
    return "\n\n".join(parts) + "\n", charts


def summary(found):
    """Returns the table of all costs with their fitted lines and exponents."""
    lines = [["cost", "server", "fitted line", "exponent", "goal", "verdict"]]
    for of in found.values():
        for series in of:
            for one in series:
                power = one.exponent()
                exponent = "–" if power is None else f"{round(power, 2) + 0.0:.2f}"
                verdict = "met" if one.is_linear() else "UNMET"
                title = one.metric.title if one is series[0] else ""
                lines.append([title, one.server, fitted(one), exponent, "linear or better", verdict])
    return table(lines)


def fitted(series):
    coefficients = line(series.sizes, series.costs)
    if coefficients is None:
        return "–"
    fixed, each = coefficients
    kind, unit = series.metric.kind, series.metric.unit
    name = "MiB" if unit > 1 else series.metric.sizes.removesuffix("s")
    sign = "−" if each < 0 else "+"
    return f"{show(kind, fixed)} {sign} {show(kind, abs(each) * unit)} × {name}"


def section(dimension, found):
    title, how = SECTIONS[dimension]
    yield f"## {title}"
    yield how
    for series in found:
        metric = series[0].metric
        yield f"### {metric.title}"
        yield f"![{metric.title}](scale/{metric.key}.svg)"
        yield table([HEAD, *(row for one in series for row in rows(one))])
        for one in series:
            for goal, verdict in goals(one)[1:]:
                yield f"{one.server}: {goal}: {verdict}."
            if not one.is_linear() and (why := reason(one)):
                yield f"{one.server} grows faster: {why}"


def table(lines):
    head, *rest = lines
    divider = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, divider, *rest))


def machine():
    """Returns the processors, kernel and versions, without the names of the host and its folders."""
    model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    kernel = re.match(r"[\d.]+", platform.release())
    versions = [
        f"Python {platform.python_version()}",
        f"Node {output('node', '--version').lstrip('v')}",
        f"Rust {output('rustc', '--version').split()[1]}",
    ]
    commit = output("git", "rev-parse", "--short", "HEAD")
    cores = f"{os.cpu_count()} cores" + (f" ({model[1]})" if model else "")
    kernel_name = f"{platform.system()} {kernel[0] if kernel else ''}".strip()
    return f"{cores}, {kernel_name}, {', '.join(versions)}, release builds of about commit {commit}"


def output(*command):
    return subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()
