import { native, type NativeServer, type NativeTelemetry } from "../native.js";
import { tracing } from "../model/tracing.js";

/** Durations are recorded this often, so that not all of them are recorded while a reader collects. */
const RECORD_MS = 1_000;

interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly bounds?: number[];
}

type Attributes = Record<string, string>;

/** The servers whose metrics are exported. */
const servers = new Set<WeakRef<NativeServer>>();
const telemetryOf = new WeakMap<NativeServer, NativeTelemetry>();
let hasInstruments = false;

/** Has the metrics of a server that begins to serve exported to OpenTelemetry, if the program has set a meter provider. */
export function exportMetrics(server: NativeServer): void {
  const api = tracing();
  if (!api) return;
  const meter = api.metrics.getMeter("gudgeon");
  // Without a provider every meter is this one, which discards everything.
  if (meter === api.createNoopMeter()) return;
  if (!telemetryOf.has(server)) {
    telemetryOf.set(server, server.telemetry());
    servers.add(new WeakRef(server));
  }
  if (hasInstruments) return;
  hasInstruments = true;
  const instruments = JSON.parse(native().NativeTelemetry.instruments()) as Instrument[];
  const histograms = new Map(
    instruments
      .filter(({ kind }) => kind === "histogram")
      .map(({ name, unit, description, bounds = [] }) => [
        name,
        meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } }),
      ]),
  );
  const record = (): void => {
    for (const telemetry of exported()) {
      for (const [name, duration, times, attributes] of JSON.parse(telemetry.durations()) as [string, number, number, Attributes][]) {
        for (let done = 0; done < times; done++) histograms.get(name)?.record(duration, attributes);
      }
    }
  };
  const observed = instruments
    .filter(({ kind }) => kind !== "histogram")
    .map(({ name, unit, description, kind }) => {
      const options = { unit, description };
      return { name, instrument: kind === "counter" ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options) };
    });
  meter.addBatchObservableCallback(
    (result) => {
      record();
      for (const telemetry of exported()) {
        for (const { name, instrument } of observed) {
          for (const [value, attributes] of JSON.parse(telemetry.observe(name)) as [number, Attributes][]) {
            result.observe(instrument, value, attributes);
          }
        }
      }
    },
    observed.map(({ instrument }) => instrument),
  );
  setInterval(record, RECORD_MS).unref();
}

function* exported(): Generator<NativeTelemetry> {
  for (const reference of servers) {
    const server = reference.deref();
    const telemetry = server && telemetryOf.get(server);
    if (telemetry) yield telemetry;
    else servers.delete(reference);
  }
}
