// Where the time went: one bar for each process, and over the run.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { RunPage } from "../types";
import type { Theme } from "../theme";
import { duration, moment } from "../format";
import { Legend, Table } from "../ui";

export function Accounts({ run, theme, names }: { run: RunPage; theme: Theme; names: string[] }) {
  const used = new Set(run.accounts.map((row) => row.class));
  const most = Math.max(1, ...run.groups.map((group) => group.wall_ns));
  return (
    <div>
      <Legend names={names} theme={theme} used={(place) => used.has(place)} />
      <div class="bars">
        {run.groups.slice(0, 16).map((group) => (
          <div class="bar-row" key={group.name}>
            <span class="bar-name">{group.name}</span>
            <span class="bar" title={group.largest} style={{ width: `${(100 * group.wall_ns) / most}%` }}>
              {group.by_class.map((ns, place) =>
                ns > 0 ? (
                  <span
                    key={place}
                    class="piece"
                    title={`${names[place] ?? ""}: ${duration(ns)}`}
                    style={{ flexGrow: String(ns), background: theme.classes[place] ?? "" }}
                  />
                ) : null,
              )}
            </span>
            <span class="dim">
              {group.wall}, n = {group.threads} {group.threads === 1 ? "thread" : "threads"}
            </span>
          </div>
        ))}
      </div>
      <p class="dim">Wall time of each process' threads together; the longest bar is {duration(most)}.</p>
      <OverTimePlot run={run} theme={theme} names={names} />
      <Table
        title={`Accounts (${run.accounts.length})`}
        columns={["account", "what the threads did", "time", "share of the wall time"]}
        rows={run.accounts.map((row) => [
          <span key="a">
            <span class="swatch" style={{ background: theme.classes[row.class] ?? "" }} /> {row.account}
          </span>,
          row.words,
          row.time,
          row.share,
        ])}
      />
      <Table
        title={`Processes (${run.groups.length})`}
        columns={["process", "threads", "wall time", "largest accounts"]}
        rows={run.groups.map((group) => [group.name, group.threads, group.wall, group.largest])}
      />
    </div>
  );
}

/** Time off the CPU by class, stacked: how many threads were off the CPU on average. */
function OverTimePlot({ run, theme, names }: { run: RunPage; theme: Theme; names: string[] }) {
  const place = useRef<HTMLDivElement>(null);
  const { bin_ns, by_class, basis } = run.over_time;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const used = by_class.map((bins, at) => ({ bins, at })).filter((s) => s.bins.some((ns) => ns > 0));
    const x = (by_class[0] ?? []).map((_, bin) => (bin * bin_ns) / 1e9);
    const sums = new Float64Array(x.length);
    const stacked = used.map(({ bins, at }) => ({
      at,
      values: bins.map((ns, bin) => (sums[bin] = (sums[bin] ?? 0) + ns / bin_ns)),
    }));
    // The highest is drawn first: each of the others covers its lower part.
    stacked.reverse();
    const options: uPlot.Options = {
      width: element.clientWidth,
      height: 190,
      legend: { show: false },
      cursor: { show: true, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(max, 0.01) * 1.05] } },
      axes: [
        {
          stroke: theme.dim,
          grid: { stroke: theme.line, width: 1 },
          values: (u, splits) =>
            splits.map((s) => moment(s * 1e9, ((u.scales["x"]?.max ?? 1) - (u.scales["x"]?.min ?? 0)) * 1e9)),
        },
        { stroke: theme.dim, grid: { stroke: theme.line, width: 1 }, label: "threads off the CPU", labelSize: 18, size: 44 },
      ],
      series: [
        {},
        ...stacked.map(({ at }) => ({
          label: names[at] ?? "",
          stroke: theme.classes[at] ?? "",
          fill: theme.classes[at] ?? "",
          width: 0,
          points: { show: false },
          ...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
        })),
      ],
    };
    const plot = new uPlot(options, [x, ...stacked.map((s) => s.values)], element);
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: 190 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [run, theme]);
  return (
    <figure>
      <figcaption>
        Threads off the CPU over the run, by what they waited for (mean number in each{" "}
        {duration(bin_ns)}): {basis}
      </figcaption>
      <div ref={place} class="plot" />
    </figure>
  );
}
