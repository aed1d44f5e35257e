"""OpenTelemetry metrics, for programs that use them: the core's numbers, read when the program's reader collects.

Imported only once the program itself has imported `opentelemetry.metrics`, so that it costs nothing without and is
never required.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

# The servers whose metrics are exported.
_servers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_lock = threading.Lock()
_has_instruments = False


def export(app: Any) -> None:
    """Has the metrics of a server that begins to serve exported, if the program has set a meter provider."""
    from opentelemetry import metrics

    # The providers of the API itself discard everything.
    if type(metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics"):
        return
    global _has_instruments
    with _lock:
        if app not in _servers:
            _servers[app] = app._native.telemetry()
        if not _has_instruments:
            _has_instruments = True
            _create_instruments(metrics)


def _create_instruments(metrics: Any) -> None:
    from msgspec.json import decode

    from .._native import instruments

    meter = metrics.get_meter("gudgeon")
    histograms: dict[str, Any] = {}

    def observe(name: str, records: bool) -> Callable[[Any], Iterable[Any]]:
        def observed(options: Any) -> Iterator[Any]:
            # Histograms can't be observed. What is recorded here is part of the same collection.
            if records:
                _record(histograms)
            for server in _exported():
                for value, attributes in decode(server.observe(name)):
                    yield metrics.Observation(value, attributes)

        return observed

    observed = []
    for instrument in decode(instruments()):
        name, unit, description = instrument["name"], instrument["unit"], instrument["description"]
        if instrument["kind"] == "histogram":
            bounds = instrument["bounds"]
            histograms[name] = _histogram(meter, name, unit, description, bounds)
        else:
            observed.append((instrument["kind"], name, unit, description))
    for place, (kind, name, unit, description) in enumerate(observed):
        create = meter.create_observable_counter if kind == "counter" else meter.create_observable_gauge
        create(name, [observe(name, place == 0)], unit=unit, description=description)


def _histogram(meter: Any, name: str, unit: str, description: str, bounds: list[float]) -> Any:
    try:
        return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)
    except TypeError:  # before 1.30 the API has no such argument
        return meter.create_histogram(name, unit, description)


def _record(histograms: dict[str, Any]) -> None:
    from msgspec.json import decode

    for server in _exported():
        for name, duration, times, attributes in decode(server.durations()):
            for _ in range(times):
                histograms[name].record(duration, attributes)


def _exported() -> list[Any]:
    with _lock:
        return list(_servers.values())
