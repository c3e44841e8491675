// Intervals kept whole as lanes of threads: zoom, pan, select, all by mouse and by keyboard.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PartAnswer } from "../types";
import type { Theme } from "../theme";
import { bandsInWords, type Span } from "../axis";
import { count, duration, moment, windowOption } from "../format";
import { isServed, part } from "../data";
import { useParam } from "../state";
import { Copy, Drawing, type Handlers, type Pointer, Table } from "../ui";
import { classOf, isOuter, laneOf, type ShownRun } from "../wire";
import { ScopeView } from "./scope";
import { draw, first, heightOf, LANE, LANES, leftOf, OVERVIEW } from "./lanes";

const SHORTEST = 1000;

function parse(text: string): Span | null {
  const [from, to] = text.split("-").map(Number);
  return from !== undefined && to !== undefined && to > from ? { from, to } : null;
}

/** What is seen of the run, and what is chosen in it. */
interface Seen {
  all: Span;
  span: Span;
  top: number;
  selected: number;
  windowed: string;
  show: (from: number, to: number) => void;
  scrollTo: (top: number) => void;
  choose: (place: number) => void;
  setWindow: (window: string) => void;
}

function useSeen(run: ShownRun, at: string): Seen {
  const all = useMemo<Span>(() => ({ from: 0, to: Math.max(1, run.length_ns) }), [run]);
  const [zoom, setZoom] = useParam(`zoom${at}`);
  const [chosen, setChosen] = useParam(`interval${at}`);
  const [windowed, setWindow] = useParam(`window${at}`);
  const [top, setTop] = useState(0);
  return {
    all,
    span: parse(zoom) ?? all,
    top,
    selected: chosen === "" ? -1 : Number(chosen),
    windowed,
    show: (from, to) => {
      const length = Math.min(all.to, Math.max(SHORTEST, to - from));
      const begin = Math.min(all.to - length, Math.max(0, from));
      setZoom(length >= all.to ? "" : `${Math.round(begin)}-${Math.round(begin + length)}`);
    },
    scrollTo: (wanted) => setTop(Math.max(0, Math.min(run.timeline.lanes.length - LANES, wanted))),
    choose: (place) => setChosen(place < 0 ? "" : String(place)),
    setWindow,
  };
}

export function TimelineView(props: { run: ShownRun; theme: Theme; names: string[]; at: string }) {
  const { run, theme, at } = props;
  const { timeline, intervals } = run;
  const seen = useSeen(run, at);
  const { span, top, selected } = seen;
  const drag = useRef<Drag | null>(null);
  const window = parse(seen.windowed);
  const handlers = { ...mouse(run, seen, drag), key: (key: string) => pressed(run, seen, key) };
  // What does not depend on what is seen is made once, so that panning draws the picture alone.
  const now = useRef(seen);
  now.current = seen;
  const longest = useMemo(() => <Longest run={run} go={(place) => go(run, now.current, place)} />, [run]);
  const { windowed, setWindow } = seen;
  const map = useMemo(
    () => <ScopeView run={run} theme={theme} at={at} window={parse(windowed)} setWindow={setWindow} />,
    [run, theme, at, windowed],
  );
  const lanes = timeline.lanes.length;
  return (
    <div>
      {map}
      <figure>
        <figcaption>
          {timeline.basis}. Above: the longest interval of all threads at each time. Drag to pan, ctrl and
          wheel to zoom, shift and drag to choose a window; keys: + - 0, arrows, n and p for the longest
          intervals, w for the window.{bandsInWords(run.recorder.losses)}
        </figcaption>
        <Drawing
          name={`timeline${at}`}
          label={`timeline of ${lanes} threads, ${timeline.basis}; a table follows`}
          height={heightOf(lanes)}
          theme={theme}
          handlers={handlers}
          draw={(canvas) =>
            draw(canvas, { timeline, all: intervals, span, top, selected, window, losses: run.recorder.losses }, theme)
          }
        />
        <p class="dim">
          {moment(span.from, span.to - span.from)} to {moment(span.to, span.to - span.from)} of the run
          ({duration(span.to - span.from)});{" "}
          {lanes > LANES
            ? `threads ${count(top + 1)} to ${count(Math.min(lanes, top + LANES))} of ${count(lanes)}`
            : `${lanes} thread${lanes === 1 ? "" : "s"}`}{" "}
          <Copy command={`whylag explain ${run.name} --window ${windowOption(span.from, span.to)}`} />
        </p>
      </figure>
      {window && <WindowAnswer run={run} window={window} />}
      {selected >= 0 && <Selected run={run} names={props.names} place={selected} />}
      {longest}
    </div>
  );
}

interface Drag {
  at: Pointer;
  span: Span;
  moved: boolean;
}

/** The moment at a place of the picture. */
const time = ({ span }: Seen, x: number, width: number) =>
  span.from + ((x - leftOf(width)) / (width - leftOf(width) - 4)) * (span.to - span.from);

/** The interval under the pointer, or the longest that is near; -1 for none. */
function hit(run: ShownRun, seen: Seen, p: Pointer): number {
  const { intervals: all } = run;
  const row = Math.floor((p.y - OVERVIEW - 8) / LANE);
  const lane = row + seen.top;
  if (row < 0 || row >= LANES || lane >= run.timeline.lanes.length) return -1;
  const near = (seen.span.to - seen.span.from) / (p.width - leftOf(p.width));
  const [from, to] = [time(seen, p.x, p.width) - 2 * near, time(seen, p.x, p.width) + 2 * near];
  let [best, longest] = [-1, 0];
  for (let place = first(all, lane, from); place < (all.begin[lane + 1] ?? 0); place++) {
    if ((all.from[place] ?? 0) > to) break;
    const length = all.length[place] ?? 0;
    const inner = isOuter(all, place) ? length / 1e6 : length;
    if ((all.from[place] ?? 0) + length >= from && inner > longest) [best, longest] = [place, inner];
  }
  return best;
}

/** Shows an interval, wherever it is. */
function go(run: ShownRun, seen: Seen, place: number): void {
  const from = run.intervals.from[place] ?? 0;
  const length = run.intervals.length[place] ?? 0;
  seen.choose(place);
  if (from < seen.span.from || from + length > seen.span.to) seen.show(from - length, from + 2 * length);
  const lane = laneOf(run.intervals, place);
  if (lane < seen.top || lane >= seen.top + LANES) seen.scrollTo(lane - LANES / 2);
}

function zoomAt(seen: Seen, x: number, width: number, factor: number): void {
  const share = Math.min(1, Math.max(0, (x - leftOf(width)) / (width - leftOf(width) - 4)));
  const length = (seen.span.to - seen.span.from) * factor;
  const middle = seen.span.from + share * (seen.span.to - seen.span.from);
  seen.show(middle - share * length, middle + (1 - share) * length);
}

function mouse(run: ShownRun, seen: Seen, drag: { current: Drag | null }): Handlers {
  return {
    down: (p) => (drag.current = { at: p, span: seen.span, moved: false }),
    move: (p) => {
      const begun = drag.current;
      if (!begun || (!begun.moved && Math.abs(p.x - begun.at.x) < 4)) return;
      begun.moved = true;
      if (begun.at.shift) {
        const ends = [time(seen, begun.at.x, p.width), time(seen, p.x, p.width)].sort((a, b) => a - b);
        seen.setWindow(ends.map((ns) => Math.round(Math.min(seen.all.to, Math.max(0, ns)))).join("-"));
      } else {
        const per = (begun.span.to - begun.span.from) / (p.width - leftOf(p.width) - 4);
        const by = (p.x - begun.at.x) * per;
        seen.show(begun.span.from - by, begun.span.to - by);
      }
    },
    up: (p) => {
      const begun = drag.current;
      drag.current = null;
      if (begun && !begun.moved) seen.choose(hit(run, seen, p));
    },
    leave: () => (drag.current = null),
    double: (x, width) => zoomAt(seen, x, width, 0.4),
    wheel: (x, delta, width) => zoomAt(seen, x, width, delta > 0 ? 1.25 : 0.8),
  };
}

/** What a key does; false if it means nothing here. */
function pressed(run: ShownRun, seen: Seen, key: string): boolean {
  const { span, all, top } = seen;
  const length = span.to - span.from;
  const middle = (span.from + span.to) / 2;
  const step = (by: number) => {
    const { details } = run.timeline;
    const next = details[Math.max(0, details.findIndex((one) => one.place === seen.selected) + by)];
    if (next) go(run, seen, next.place);
  };
  const here = `${Math.round(span.from)}-${Math.round(span.to)}`;
  const does: Record<string, () => void> = {
    ArrowLeft: () => seen.show(span.from - length / 5, span.to - length / 5),
    ArrowRight: () => seen.show(span.from + length / 5, span.to + length / 5),
    ArrowUp: () => seen.scrollTo(top - 1),
    ArrowDown: () => seen.scrollTo(top + 1),
    "+": () => seen.show(middle - length / 4, middle + length / 4),
    "=": () => seen.show(middle - length / 4, middle + length / 4),
    "-": () => seen.show(middle - length, middle + length),
    "0": () => seen.show(all.from, all.to),
    n: () => step(1),
    p: () => step(-1),
    w: () => seen.setWindow(seen.windowed === "" ? here : ""),
    Escape: () => seen.choose(-1),
  };
  does[key]?.();
  return key in does;
}

function Longest({ run, go }: { run: ShownRun; go: (place: number) => void }) {
  const { timeline, intervals } = run;
  return (
    <Table
      title={`The longest intervals (${timeline.details.length})`}
      columns={["number", "thread", "at", "what", "command"]}
      rows={timeline.details.slice(0, 100).map((detail) => [
        <button key="n" type="button" onClick={() => go(detail.place)}>
          {detail.number}
        </button>,
        timeline.lanes[laneOf(intervals, detail.place)]?.name ?? "",
        duration(intervals.from[detail.place] ?? 0, 6),
        detail.text,
        <Copy key="c" command={detail.command} />,
      ])}
    />
  );
}

function Selected({ run, names, place }: { run: ShownRun; names: string[]; place: number }) {
  const { timeline, intervals } = run;
  const detail = timeline.details.find((one) => one.place === place);
  const from = intervals.from[place] ?? 0;
  const length = intervals.length[place] ?? 0;
  const lane = timeline.lanes[laneOf(intervals, place)];
  return (
    <aside class="selected">
      <h4>
        {lane?.name}: {duration(length)} at {duration(from, 6)}, {names[classOf(intervals, place)]}
      </h4>
      {detail ? (
        <>
          <p>{detail.text}</p>
          <ul>
            {detail.others.map((other) => (
              <li key={other}>{other}</li>
            ))}
          </ul>
          {detail.stack.length > 0 && (
            <ol class="stack">
              {detail.stack.map((frame, number) => (
                <li key={number}>{frame}</li>
              ))}
            </ol>
          )}
        </>
      ) : (
        <p class="dim">Not among the longest, which alone are told in words here.</p>
      )}
      <Copy
        command={
          detail?.command ?? `whylag explain ${run.name} --window ${windowOption(from, from + length)}`
        }
      />
    </aside>
  );
}

/** What `explain --window` says; a file has nobody to ask, so it has the command. */
function WindowAnswer({ run, window }: { run: ShownRun; window: Span }) {
  const [answer, setAnswer] = useState<PartAnswer | string | null>(null);
  const { from, to } = window;
  useEffect(() => {
    if (!isServed()) return;
    setAnswer("...");
    const later = setTimeout(() => {
      part(run.name, from, to).then(setAnswer, (error: unknown) => setAnswer(String(error)));
    }, 300);
    return () => clearTimeout(later);
  }, [run, from, to]);
  return (
    <aside class="selected">
      <h4>
        The window {windowOption(from, to)} ({duration(to - from)})
      </h4>
      {typeof answer === "string" && <p>{answer}</p>}
      {answer !== null && typeof answer !== "string" && (
        <>
          <p class="headline small">{answer.headline}</p>
          <p>{answer.sums}</p>
          <p class="dim">{answer.explanation.scope?.basis}</p>
        </>
      )}
      <Copy command={`whylag explain ${run.name} --window ${windowOption(from, to)}`} />
    </aside>
  );
}
