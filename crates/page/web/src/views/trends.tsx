// Figures of runs over time, and when they changed.
import { useMemo } from "preact/hooks";
import { duration, percent } from "../format";
import type { Open } from "../home";
import { useParam } from "../state";
import type { Theme } from "../theme";
import type { TrendLine, TrendPage } from "../types";
import { Table } from "../ui";
import { Curve, type Curves } from "./curve";

export function Trends({ all, theme, open }: { all: TrendPage[]; theme: Theme; open: Open }) {
  const [group, setGroup] = useParam("series");
  const page = all.find((one) => one.group === group) ?? all[0];
  if (!page) {
    return <p>No series: it takes 6 recorded runs of the same program on the same host.</p>;
  }
  return (
    <>
      <p class="controls">
        <label>
          Series{" "}
          <select value={page.group} onChange={(event) => setGroup(event.currentTarget.value)}>
            {all.map((one) => (
              <option key={one.group} value={one.group}>
                {one.group} ({one.runs.length} runs)
              </option>
            ))}
          </select>
        </label>
      </p>
      <Changes page={page} open={open} />
      <Line page={page} theme={theme} />
    </>
  );
}

function Changes({ page, open }: { page: TrendPage; open: Open }) {
  if (page.changes.length === 0) return <p>No change beyond what runs differ by anyway.</p>;
  return (
    <ul class="changes">
      {page.changes.map((change) => (
        <li key={change.run}>
          {change.text}{" "}
          <button type="button" onClick={() => open(change.run)}>
            open run {change.run}
          </button>
        </li>
      ))}
    </ul>
  );
}

const titleOf = (line: TrendLine) => `${line.kind} ${line.name}`;
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);

function Line({ page, theme }: { page: TrendPage; theme: Theme }) {
  const [wanted, setWanted] = useParam("line");
  const line = page.lines.find((one) => titleOf(one) === wanted) ?? page.lines[0];
  const curves = useMemo<Curves | null>(() => {
    if (!line) return null;
    const isTime = line.kind === "latency";
    return {
      x: page.runs.map((_, place) => place),
      y: line.p99 ? [line.values, line.p99] : [line.values],
      nameX: (place) => {
        const ms = page.started_unix_ms[place];
        return Number.isInteger(place) && ms !== undefined ? `run ${page.runs[place]}\n${day(ms)}` : "";
      },
      nameY: (value) => (isTime ? duration(value) : percent(value)),
      logarithmicY: isTime,
      height: 260,
    };
  }, [page, line]);
  if (!line || !curves) return null;
  const shown = (value: number | null | undefined) =>
    value === null || value === undefined ? "" : line.kind === "latency" ? duration(value) : percent(value);
  return (
    <>
      <label>
        Figure{" "}
        <select value={titleOf(line)} onChange={(event) => setWanted(event.currentTarget.value)}>
          {page.lines.map((one, place) => (
            <option key={titleOf(one)} value={titleOf(one)}>
              {titleOf(one)}
              {place < page.changed ? " (changed)" : ""}
            </option>
          ))}
        </select>
      </label>
      <figure>
        <figcaption>
          {line.kind === "latency"
            ? `${line.name} of each run: p50${line.p99 ? "; dashed: p99" : ""}`
            : `${line.name}: part of the wall time of each run`}
          , n = {page.runs.length} runs, oldest first.
        </figcaption>
        <Curve curves={curves} theme={theme} />
      </figure>
      <Table
        title={`The same as a table (${page.runs.length} runs)`}
        columns={["run", "started (UTC)", line.kind === "latency" ? "p50" : "part", ...(line.p99 ? ["p99"] : [])]}
        rows={page.runs.map((run, place) => [
          run,
          new Date(page.started_unix_ms[place] ?? 0).toISOString().slice(0, 19).replace("T", " "),
          shown(line.values[place]),
          ...(line.p99 ? [shown(line.p99[place])] : []),
        ])}
      />
    </>
  );
}
