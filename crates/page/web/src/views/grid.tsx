// Runs in columns: outcomes, causes, losses, accounts and facts, and what splits the bad ones.
import { useMemo, useState } from "preact/hooks";
import { percent } from "../format";
import type { Open } from "../home";
import type { Theme } from "../theme";
import type { GridCell, GridPage, GridRow, Outcome } from "../types";
import { type Canvas, Drawing, fit, type Handlers, Table } from "../ui";

const ROW = 17;
const WIDEST = 26;
/** Rows of the table of a row's values. */
const MOST = 2000;

const WORDS: Record<Outcome, string> = { clean: "clean", recovered: "recovered", lost: "lost" };

export function Grids({ all, theme, open }: { all: GridPage[]; theme: Theme; open: Open }) {
  if (all.length === 0) return <p>No run has figures: "whylag record" stores them with each run.</p>;
  return (
    <>
      <p class="dim">
        A run a column, oldest first. Lost: exit status other than 0; recovered: a cause was named. A
        click opens a run. In the terminal other rules can be given: <code>whylag runs --grid --lost RULE</code>.
      </p>
      {all.map((page, place) => (
        <Grid key={page.grid.group} page={page} name={`grid${place}`} theme={theme} open={open} />
      ))}
    </>
  );
}

interface Place {
  row: number;
  run: number;
}

function Grid(props: { page: GridPage; name: string; theme: Theme; open: Open }) {
  const { page, name, theme, open } = props;
  const { grid, splits } = page;
  const [here, setHere] = useState<Place | null>(null);
  const rows = grid.rows;
  const height = (rows.length + 1) * ROW + 4;
  const draw = useMemo(() => (canvas: Canvas) => paint(canvas, page, theme, here), [page, theme, here]);
  const at = (x: number, y: number, width: number): Place | null => {
    const run = Math.floor((x - names(width)) / column(width, grid.runs.length));
    const row = Math.floor(y / ROW) - 1;
    const isIn = run >= 0 && run < grid.runs.length && row >= -1 && row < rows.length;
    return isIn ? { row, run } : null;
  };
  const enter = (place: Place | null) => {
    const run = place && grid.runs[place.run];
    if (run !== null && run !== undefined) open(run);
  };
  const step = (row: number, run: number) => {
    const from = here ?? { row: -1, run: grid.runs.length };
    const kept = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
    setHere({ row: kept(from.row + row, -1, rows.length - 1), run: kept(from.run + run, 0, grid.runs.length - 1) });
  };
  const steps: Record<string, () => void> = {
    ArrowLeft: () => step(0, -1),
    ArrowRight: () => step(0, 1),
    ArrowUp: () => step(-1, 0),
    ArrowDown: () => step(1, 0),
    Enter: () => enter(here),
    Escape: () => setHere(null),
  };
  const handlers: Handlers = {
    move: ({ x, y, width }) => setHere(at(x, y, width)),
    up: ({ x, y, width }) => enter(at(x, y, width)),
    key: (key) => {
      const act = steps[key];
      act?.();
      return act !== undefined;
    },
  };
  const of = (outcome: Outcome) => grid.outcomes.filter((one) => one === outcome).length;
  return (
    <section>
      <h2>{grid.group}</h2>
      <p>
        {grid.runs.length} runs: {of("clean")} clean, {of("recovered")} recovered, {of("lost")} lost.
      </p>
      <Drawing
        name={name}
        label={`${grid.runs.length} runs in columns, ${rows.length} rows`}
        height={height}
        draw={draw}
        theme={theme}
        handlers={handlers}
      />
      <p class="told">{here ? inWords(page, here) : "Darker is more; of facts each shade is a value."}</p>
      <ul>
        {splits.map((split) => (
          <li key={split}>{split}</li>
        ))}
      </ul>
      <Table
        title={`The same as a table (${rows.length} rows of ${grid.runs.length} runs)`}
        columns={["run", "outcome", ...rows.map((row) => row.name)]}
        rows={grid.runs
          .slice(-MOST)
          .map((run, place) => {
            const number = place + Math.max(0, grid.runs.length - MOST);
            return [run, WORDS[grid.outcomes[number] ?? "clean"], ...rows.map((row) => text(row.cells[number]))];
          })}
      />
    </section>
  );
}

/** Room for the names of rows. */
const names = (width: number) => Math.min(230, Math.round(width * 0.45));
const column = (width: number, runs: number) => Math.min(WIDEST, (width - names(width)) / Math.max(1, runs));

function paint(canvas: Canvas, { grid }: GridPage, theme: Theme, here: Place | null): void {
  const { context, width } = canvas;
  const [left, wide] = [names(width), column(width, grid.runs.length)];
  context.clearRect(0, 0, width, canvas.height);
  const cell = (row: number, run: number, color: string) => {
    context.fillStyle = color;
    context.fillRect(left + run * wide, (row + 1) * ROW + 1, Math.max(1, wide - (wide > 4 ? 1 : 0)), ROW - 2);
  };
  const name = (row: number, words: string) => {
    context.fillStyle = row === here?.row ? theme.text : theme.dim;
    context.fillText(fit(context, words, left - 8), 0, (row + 1.5) * ROW);
  };
  const colors: Record<Outcome, string> = { clean: theme.line, recovered: theme.warning, lost: theme.loss };
  name(-1, "outcome");
  grid.outcomes.forEach((outcome, run) => cell(-1, run, colors[outcome]));
  grid.rows.forEach((row, number) => {
    name(number, row.name);
    const shade = shades(row);
    row.cells.forEach((one, run) => {
      const share = shade(one);
      if (share !== null) cell(number, run, theme.ramp(share));
    });
  });
  if (!here) return;
  context.strokeStyle = theme.text;
  context.strokeRect(left + here.run * wide - 0.5, (here.row + 1) * ROW + 0.5, wide, ROW - 1);
}

/** How dark a cell is, 0 to 1; null for nothing. */
function shades(row: GridRow): (cell: GridCell) => number | null {
  const values = [...new Set(row.cells.map((cell) => ("value" in cell ? cell.value : null)))];
  const step = 1 / Math.max(1, values.length - 1);
  return (cell) => {
    if ("share" in cell) return cell.share > 0 ? cell.share : null;
    if ("count" in cell) return cell.count > 0 ? Math.min(1, Math.log10(cell.count) / 6) : null;
    return values.indexOf(cell.value) * step;
  };
}

function text(cell: GridCell | undefined): string {
  if (!cell) return "";
  if ("share" in cell) return cell.share > 0 ? percent(cell.share) : "";
  if ("count" in cell) return cell.count > 0 ? String(cell.count) : "";
  return cell.value ?? "(not set)";
}

function inWords({ grid }: GridPage, { row, run }: Place): string {
  const outcome = WORDS[grid.outcomes[run] ?? "clean"];
  const of = `run ${grid.runs[run]}, ${outcome}`;
  const shown = grid.rows[row];
  return shown ? `${of}: ${shown.name}: ${text(shown.cells[run]) || "none"}` : of;
}
