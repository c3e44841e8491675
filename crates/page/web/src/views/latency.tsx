// Every measured value: as a map over time, and as a curve of percentiles.
import { useMemo } from "preact/hooks";
import type { Latency, RunPage } from "../types";
import type { Theme } from "../theme";
import { count, duration, percent } from "../format";
import { bandsInWords, lossBands, scale, timeAxis } from "../axis";
import { useParam } from "../state";
import { type Canvas, Drawing, Table } from "../ui";
import { Curve, type Curves } from "./curve";

const LEFT = 64;
const HEIGHT = 300;

export function Latencies(props: { run: RunPage; other: RunPage | null; theme: Theme; at: string }) {
  const { run, theme, at } = props;
  const [metric, setMetric] = useParam("metric");
  const latency = run.latencies.find((one) => one.metric === metric) ?? run.latencies[0];
  if (!latency) return <p>No latency was measured.</p>;
  const other = props.other?.latencies.find((one) => one.metric === latency.metric) ?? null;
  return (
    <div>
      <label>
        Metric{" "}
        <select value={latency.metric} onChange={(event) => setMetric(event.currentTarget.value)}>
          {run.latencies.map((one) => (
            <option key={one.metric} value={one.metric}>
              {one.metric} ({one.about})
            </option>
          ))}
        </select>
      </label>
      <figure>
        <figcaption>
          {latency.metric}: {latency.about}. A column is {duration(latency.column_ns)}, a row a latency
          (logarithmic); stronger is more values; the mark in each column is its largest value.
          {bandsInWords(run.recorder.losses)}
        </figcaption>
        <Drawing
          name={`heat${at}`}
          label={`heat map of ${latency.metric}, ${latency.about}; the table below has its values`}
          height={HEIGHT}
          theme={theme}
          draw={(canvas) => drawMap(canvas, latency, run, theme)}
        />
      </figure>
      <Percentiles latency={latency} other={other} theme={theme} />
      <Distribution latency={latency} other={other} theme={theme} />
      <Table
        title="Percentiles"
        columns={["part of the values", latency.metric, ...(other ? ["the other run"] : [])]}
        rows={latency.quantiles.map(([q, ns]) => {
          const beside = other?.quantiles.find(([of]) => of === q);
          return [quantileName(q), duration(ns), ...(other ? [beside ? duration(beside[1]) : ""] : [])];
        })}
      />
      <Table
        title={`Each column (${latency.columns.length})`}
        columns={["from", "values", "largest"]}
        rows={latency.columns.map((column) => [
          duration(column.from_ns),
          count(column.n),
          duration(column.max_ns),
        ])}
      />
    </div>
  );
}

const quantileName = (q: number) =>
  q === 0 ? "smallest" : q === 1 ? "largest" : `p${Number((q * 100).toFixed(4))}`;

function drawMap(canvas: Canvas, latency: Latency, run: RunPage, theme: Theme): void {
  const { context, width, height } = canvas;
  context.clearRect(0, 0, width, height);
  const span = { from: 0, to: Math.max(run.length_ns, 1) };
  const bottom = height - 20;
  timeAxis(canvas, span, LEFT, width - 4, theme);
  const x = scale(span, LEFT, width - 4);
  const rows = latency.rows.length - 1;
  const step = bottom / Math.max(1, rows);
  const most = Math.log(1 + latency.columns.reduce((m, c) => c.cells.reduce((n, [, k]) => Math.max(n, k), m), 0));
  for (const [place, column] of latency.columns.entries()) {
    const wide = latency.column_ns;
    const next = latency.columns[place + 1]?.from_ns ?? column.from_ns + wide;
    const from = Math.max(LEFT, x(column.from_ns));
    const to = Math.min(width - 4, Math.max(from + 1, x(Math.min(next, column.from_ns + wide)) - 0.5));
    for (const [row, n] of column.cells) {
      context.fillStyle = theme.ramp(Math.log(1 + n) / most);
      context.fillRect(from, bottom - (row + 1) * step, to - from, Math.max(1, step - 0.5));
    }
    if (column.n > 0) {
      const row = column.cells[column.cells.length - 1]?.[0] ?? 0;
      context.fillStyle = theme.accent;
      context.fillRect(from, bottom - (row + 1) * step, to - from, Math.max(2, Math.min(3, step)));
    }
  }
  lossBands(canvas, run.recorder.losses, span, LEFT, width - 4, bottom, theme);
  context.fillStyle = theme.dim;
  context.textAlign = "right";
  const every = Math.max(1, Math.ceil(rows / (bottom / 22)));
  for (let row = 0; row <= rows; row += every) {
    context.fillText(duration(latency.rows[row] ?? 0, 2), LEFT - 6, Math.min(bottom - 5, Math.max(6, bottom - row * step)));
  }
  context.textAlign = "left";
}

interface Pair {
  latency: Latency;
  other: Latency | null;
  theme: Theme;
}

/** All x of the curves, and of each curve its y there. */
function joined(points: [number, number][][]): { x: number[]; y: (number | null)[][] } {
  const x = [...new Set(points.flat().map(([at]) => at))].sort((a, b) => a - b);
  const of = (curve: [number, number][]) => {
    const known = new Map(curve);
    return x.map((at) => known.get(at) ?? null);
  };
  return { x, y: points.map(of) };
}

const both = (latency: Latency, other: Latency | null) => [latency, ...(other ? [other] : [])];

/** HdrHistogram's picture: a log scale of nines. */
function Percentiles({ latency, other, theme }: Pair) {
  const curves = useMemo<Curves>(() => {
    const { x, y } = joined(both(latency, other).map(nines));
    const last = x[x.length - 1];
    const nameX = (at: number) => (at === last ? "largest" : nineName(at));
    return { x, y, ticks: x, nameX, nameY: duration, logarithmicY: true, height: 220 };
  }, [latency, other]);
  return (
    <figure>
      <figcaption>
        Percentiles of {latency.metric} (n = {count(latency.n)}
        {other ? `; dashed, the other run: n = ${count(other.n)}` : ""}): each nine takes the same width.
      </figcaption>
      <Curve curves={curves} theme={theme} />
    </figure>
  );
}

/** The part of the values up to each latency, on demand. */
function Distribution({ latency, other, theme }: Pair) {
  const [shown, setShown] = useParam("ecdf");
  const curves = useMemo<Curves>(() => {
    const of = ({ rows, up_to }: Latency) =>
      up_to.map((part, row): [number, number] => [Math.max(1, rows[row + 1] ?? 0), part]);
    const { x, y } = joined(both(latency, other).map(of));
    return { x, y, nameX: duration, nameY: percent, logarithmicX: true, height: 220 };
  }, [latency, other]);
  return (
    <details class="table" open={shown !== ""} onToggle={(event) => setShown(event.currentTarget.open ? "1" : "")}>
      <summary>Empirical distribution (ECDF)</summary>
      {shown !== "" && (
        <figure>
          <figcaption>
            Part of the values of {latency.metric} up to each latency (n = {count(latency.n)}
            {other ? `; dashed, the other run: n = ${count(other.n)}` : ""}).
          </figcaption>
          <Curve curves={curves} theme={theme} />
        </figure>
      )}
    </details>
  );
}

/** (place on the axis, ns): -log10(1 - q), the largest one behind the last. */
function nines(latency: Latency): [number, number][] {
  const last = Math.log10(Math.max(10, latency.n)) + 0.1;
  return latency.quantiles.map(([q, ns]) => [
    Number((q === 1 ? last : -Math.log10(1 - q)).toFixed(6)),
    Math.max(1, ns),
  ]);
}

const nineName = (at: number) => {
  const q = 1 - 10 ** -at;
  return at === 0 ? "0" : `p${Number((q * 100).toFixed(Math.max(0, Math.ceil(at) - 2) + 1))}`;
};
