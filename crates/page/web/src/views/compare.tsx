// Two runs beside each other: causes and accounts, before and after.
import { useMemo } from "preact/hooks";
import type { Comparison, Page, Shift } from "../types";
import { useParam } from "../state";
import type { Theme } from "../theme";
import { Copy, Table } from "../ui";
import { Differences } from "./checkup";
import { Curve, type Curves } from "./curve";
import { Flame } from "./flame";

export function Compare({ page, theme }: { page: Page; theme: Theme }) {
  const [before, after] = page.runs;
  if (!before || !after) return null;
  const most = Math.max(0.001, ...page.differences.flatMap((row) => row.share));
  return (
    <div>
      <div class="two">
        {[before, after].map((run, place) => (
          <div key={place}>
            <h4>
              {place === 0 ? "Before" : "After"}: {run.target}
            </h4>
            <p class="headline small">{run.headline}</p>
          </div>
        ))}
      </div>
      <p class="dim">Part of the wall time in each account, before above after; n is in each run.</p>
      <div class="bars">
        {page.differences.slice(0, 14).map((row) => (
          <div class="bar-row" key={row.account}>
            <span class="bar-name">{row.account}</span>
            <span class="pair">
              {row.share.map((share, place) => (
                <span
                  key={place}
                  class={place === 0 ? "half before" : "half"}
                  style={{
                    width: `${(100 * share) / most}%`,
                    background: theme.classes[row.class] ?? "",
                  }}
                />
              ))}
            </span>
            <span class="dim">{row.shares.join(" to ")}</span>
          </div>
        ))}
      </div>
      <Table
        title={`Accounts of both (${page.differences.length})`}
        columns={["account", "before", "part", "after", "part"]}
        rows={page.differences.map((row) => [
          row.account,
          row.time[0],
          row.shares[0],
          row.time[1],
          row.shares[1],
        ])}
      />
      {page.comparison && <Moved comparison={page.comparison} theme={theme} />}
      {page.surroundings && (
        <>
          <h3>Host and program</h3>
          <Differences found={page.surroundings} />
        </>
      )}
    </div>
  );
}

/** How latencies and stacks moved, as `whylag compare` says. */
function Moved({ comparison, theme }: { comparison: Comparison; theme: Theme }) {
  return (
    <div>
      <p>{comparison.summary}</p>
      {comparison.warnings.map((warning) => (
        <p class="dim" key={warning}>
          {warning}
        </p>
      ))}
      <p>
        In the terminal: <Copy command={comparison.command} />
      </p>
      {comparison.shifts.length > 0 && <ShiftFunction shifts={comparison.shifts} theme={theme} />}
      {comparison.flames && (
        <>
          <h3>Stacks that differ</h3>
          <Flame flames={comparison.flames} theme={theme} at="moved" kinds={comparison.kinds} />
        </>
      )}
    </div>
  );
}

const quantile = (probability: number) => `p${Number((probability * 100).toFixed(4))}`;

/** After over before, quantile by quantile. */
function ShiftFunction({ shifts, theme }: { shifts: Shift[]; theme: Theme }) {
  const [metric, setMetric] = useParam("shift");
  const shift = shifts.find((one) => one.metric === metric) ?? shifts[0];
  const curves = useMemo<Curves | null>(() => {
    if (!shift) return null;
    const { points } = shift;
    const ratios = points.map((point) => point.ratio);
    const banded = points.every((point) => point.band !== null);
    const band = [0, 1].map((side) => points.map((point) => point.band?.[side] ?? null));
    const x = points.map((_, place) => place);
    return {
      x,
      y: [ratios, points.map(() => 1), ...(banded ? band : [])],
      band: banded,
      level: 1,
      ticks: x,
      nameX: (place) => quantile(points[place]?.probability ?? 0),
      nameY: (ratio) => `${Number(ratio.toPrecision(3))} x`,
      logarithmicY: Math.max(...ratios, 1) > 10 * Math.min(...ratios, 1),
      height: 200,
    };
  }, [shift]);
  if (!shift || !curves) return null;
  return (
    <div>
      <h3>How far each quantile moved</h3>
      <label>
        Latency{" "}
        <select value={shift.metric} onChange={(event) => setMetric(event.currentTarget.value)}>
          {shifts.map((one) => (
            <option key={one.metric} value={one.metric}>
              {one.metric} ({one.about})
            </option>
          ))}
        </select>
      </label>
      <figure>
        <figcaption>
          Shift function of {shift.metric} ({shift.about}): after over before at each quantile; dashed: no
          change.{" "}
          {curves.band
            ? "The band holds for all quantiles at once, with 95 % confidence."
            : "One run a side has no band: compare sets of five runs and more for one."}
        </figcaption>
        <Curve curves={curves} theme={theme} />
      </figure>
      <Table
        title={`Quantiles (${shift.points.length})`}
        columns={["quantile", "after over before"]}
        rows={shift.points.map((point) => [quantile(point.probability), point.text])}
      />
    </div>
  );
}
