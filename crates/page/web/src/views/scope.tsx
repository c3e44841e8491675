// When threads were off the CPU: columns are seconds, rows parts of a second (after FlameScope).
import { useMemo, useRef, useState } from "preact/hooks";
import type { SecondMap, SecondMaps } from "../types";
import type { ShownRun } from "../wire";
import type { Theme } from "../theme";
import { bandsInWords, lossBands, scale, type Span, timeAxis } from "../axis";
import { duration } from "../format";
import { useParam } from "../state";
import { type Canvas, Drawing, type Handlers, type Pointer, Table } from "../ui";

const LEFT = 64;
const ROW = 4;

/** The cell at a place of the picture; -1 beside it. */
function cellAt(scope: SecondMaps, span: Span, p: Pointer): number {
  const at = ((p.x - LEFT) / (p.width - 4 - LEFT)) * span.to;
  const column = Math.floor(at / scope.column_ns);
  const row = scope.rows - 1 - Math.floor(p.y / ROW);
  if (at < 0 || column >= scope.columns || row < 0 || row >= scope.rows) return -1;
  return column * scope.rows + row;
}

/** The time from the earlier of two cells to the later one. */
function between(scope: SecondMaps, span: Span, a: number, b: number): string {
  const from = Math.min(a, b) * scope.row_ns;
  return `${from}-${Math.min(span.to, (Math.max(a, b) + 1) * scope.row_ns)}`;
}

export function ScopeView(props: { run: ShownRun; theme: Theme; at: string; setWindow: (window: string) => void; window: Span | null }) {
  const { run, theme, at, setWindow } = props;
  const { scope } = run;
  const [account, setAccount] = useParam("scope");
  const [cursor, setCursor] = useState(-1);
  const begun = useRef(-1);
  const span = useMemo<Span>(() => ({ from: 0, to: Math.max(1, run.length_ns) }), [run]);
  const map = scope.maps.find((one) => one.account === account) ?? scope.maps[0];
  const cells = useMemo(() => new Map(map?.cells ?? []), [map]);
  if (!map) return null;
  const select = (cell: number) => setWindow(between(scope, span, begun.current, cell));
  const handlers: Handlers = {
    down: (p) => {
      begun.current = cellAt(scope, span, p);
      if (begun.current >= 0) select(begun.current);
    },
    move: (p) => {
      const cell = cellAt(scope, span, p);
      setCursor(cell);
      if (begun.current >= 0 && cell >= 0) select(cell);
    },
    up: () => (begun.current = -1),
    key: (key) => {
      const steps: Record<string, number> = { ArrowUp: 1, ArrowDown: -1, ArrowRight: scope.rows, ArrowLeft: -scope.rows };
      const step = steps[key];
      const last = scope.columns * scope.rows - 1;
      if (step !== undefined) setCursor(Math.min(last, Math.max(0, cursor < 0 ? 0 : cursor + step)));
      else if (key === "Enter" && cursor >= 0) setWindow(between(scope, span, cursor, cursor));
      else if (key === "Escape") setWindow("");
      else return false;
      return true;
    },
  };
  const most = [...map.cells].sort((a, b) => b[1] - a[1]).slice(0, 50);
  const moment = (cell: number) => duration(cell * scope.row_ns, 6);
  return (
    <figure>
      <figcaption>
        <label>
          Account{" "}
          <select value={map.account} onChange={(event) => setAccount(event.currentTarget.value)}>
            {scope.maps.map((one) => (
              <option key={one.account} value={one.account}>
                {one.account} ({one.time})
              </option>
            ))}
          </select>
        </label>{" "}
        A column is {duration(scope.column_ns)}, a row {duration(scope.row_ns)} of it; stronger is more time of all
        threads in {map.account}, at most {duration(map.most_ns)} in a cell. {scope.basis}. Click or drag over cells to
        have that time explained; keys: arrows, Enter, Escape.{bandsInWords(run.recorder.losses)}
      </figcaption>
      <Drawing
        name={`scope${at}`}
        label={`map of ${map.account} by second and part of a second, ${scope.basis}; a table follows`}
        height={scope.rows * ROW + 20}
        theme={theme}
        handlers={handlers}
        draw={(canvas) => drawScope(canvas, run, map, span, cursor, props.window, theme)}
      />
      <p class="told">
        {cursor >= 0 && `at ${moment(cursor)}: ${duration(cells.get(cursor) ?? 0)} of ${map.account}`}
      </p>
      <Table
        title={`Cells with most of it (${most.length})`}
        columns={["at", "time"]}
        rows={most.map(([cell, ns]) => [moment(cell), duration(ns)])}
      />
    </figure>
  );
}

function drawScope(
  canvas: Canvas,
  run: ShownRun,
  map: SecondMap,
  span: Span,
  cursor: number,
  window: Span | null,
  theme: Theme,
): void {
  const { context, width, height } = canvas;
  const { scope } = run;
  context.clearRect(0, 0, width, height);
  timeAxis(canvas, span, LEFT, width - 4, theme);
  const x = scale(span, LEFT, width - 4);
  const bottom = scope.rows * ROW;
  const box = (cell: number): [number, number, number, number] => {
    const column = Math.floor(cell / scope.rows);
    const from = x(column * scope.column_ns);
    const to = Math.min(width - 4, x((column + 1) * scope.column_ns));
    return [from, bottom - ((cell % scope.rows) + 1) * ROW, Math.max(1, to - from - 0.5), ROW - 0.5];
  };
  // By the square root a full cell differs from a busy one, and a single wait is still seen.
  for (const [cell, ns] of map.cells) {
    context.fillStyle = theme.ramp(Math.sqrt(ns / Math.max(1, map.most_ns)));
    context.fillRect(...box(cell));
  }
  lossBands(canvas, run.recorder.losses, span, LEFT, width - 4, bottom, theme);
  context.strokeStyle = theme.accent;
  if (window) {
    const last = Math.floor((window.to - 1) / scope.row_ns);
    for (let cell = Math.floor(window.from / scope.row_ns); cell <= last; cell++) context.strokeRect(...box(cell));
  }
  context.strokeStyle = theme.text;
  if (cursor >= 0) context.strokeRect(...box(cursor));
  context.fillStyle = theme.dim;
  context.textAlign = "right";
  for (let part = 0; part <= 4; part++) {
    const y = Math.min(bottom - 5, Math.max(6, bottom * (1 - part / 4)));
    context.fillText(part === 0 ? "0" : duration((scope.column_ns * part) / 4), LEFT - 6, y);
  }
  context.textAlign = "left";
}
