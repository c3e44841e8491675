// Intervals kept whole as lanes of threads: zoom, pan, select, all by mouse and by keyboard.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PartAnswer, RunPage } from "../types";
import type { Theme } from "../theme";
import type { Span } from "../axis";
import { duration, moment, windowOption } from "../format";
import { isServed, part } from "../data";
import { useParam } from "../state";
import { Copy, Drawing, type Handlers, type Pointer, Table } from "../ui";
import { draw, first, HEIGHT, index, LANE, LANES, LEFT, OVERVIEW } from "./lanes";

const SHORTEST = 1000;

function parse(text: string): Span | null {
  const [from, to] = text.split("-").map(Number);
  return from !== undefined && to !== undefined && to > from ? { from, to } : null;
}

export function TimelineView(props: { run: RunPage; theme: Theme; names: string[]; at: string }) {
  const { run, theme, at } = props;
  const { timeline } = run;
  const all = useMemo<Span>(() => ({ from: 0, to: Math.max(1, run.length_ns) }), [run]);
  const indexed = useMemo(() => index(timeline), [timeline]);
  const [zoom, setZoom] = useParam(`zoom${at}`);
  const [chosen, setChosen] = useParam(`interval${at}`);
  const [windowed, setWindowed] = useParam(`window${at}`);
  const [top, setTop] = useState(0);
  const drag = useRef<{ at: Pointer; span: Span; moved: boolean } | null>(null);
  const span = parse(zoom) ?? all;
  const selected = chosen === "" ? -1 : Number(chosen);
  const window = parse(windowed);

  const show = (from: number, to: number) => {
    const length = Math.min(all.to, Math.max(SHORTEST, to - from));
    const begin = Math.min(all.to - length, Math.max(0, from));
    const whole = length >= all.to;
    setZoom(whole ? "" : `${Math.round(begin)}-${Math.round(begin + length)}`);
  };
  const zoomAt = (x: number, width: number, factor: number) => {
    const share = Math.min(1, Math.max(0, (x - LEFT) / (width - LEFT - 4)));
    const length = (span.to - span.from) * factor;
    const middle = span.from + share * (span.to - span.from);
    show(middle - share * length, middle + (1 - share) * length);
  };
  const time = (x: number, width: number) =>
    span.from + ((x - LEFT) / (width - LEFT - 4)) * (span.to - span.from);
  const scrollTo = (wanted: number) =>
    setTop(Math.max(0, Math.min(timeline.lanes.length - LANES, wanted)));

  /** The interval under the pointer, or the longest that is near. */
  const hit = (p: Pointer): number => {
    const row = Math.floor((p.y - OVERVIEW - 8) / LANE);
    const lane = indexed.lanes[row + top];
    if (row < 0 || row >= LANES || !lane) return -1;
    const near = (span.to - span.from) / (p.width - LEFT);
    const [from, to] = [time(p.x, p.width) - 2 * near, time(p.x, p.width) + 2 * near];
    let [best, longest] = [-1, 0];
    for (let i = first(lane, from); i < lane.places.length; i++) {
      const place = lane.places[i] ?? 0;
      if ((indexed.from[place] ?? 0) > to) break;
      const length = indexed.length[place] ?? 0;
      const inner = timeline.outer[place] === 1 ? length / 1e6 : length;
      if ((indexed.from[place] ?? 0) + length >= from && inner > longest) [best, longest] = [place, inner];
    }
    return best;
  };

  const go = (place: number) => {
    const detail = timeline.details.find((one) => one.place === place);
    const from = indexed.from[place] ?? 0;
    const length = indexed.length[place] ?? 0;
    setChosen(String(place));
    if (from < span.from || from + length > span.to) show(from - length, from + 2 * length);
    const lane = timeline.lane[place] ?? 0;
    if (lane < top || lane >= top + LANES) scrollTo(lane - LANES / 2);
    return detail;
  };
  const step = (by: number) => {
    const now = timeline.details.findIndex((one) => one.place === selected);
    const next = timeline.details[Math.max(0, now + by)];
    if (next) go(next.place);
  };

  const handlers: Handlers = {
    down: (p) => (drag.current = { at: p, span, moved: false }),
    move: (p) => {
      const begun = drag.current;
      if (!begun || (!begun.moved && Math.abs(p.x - begun.at.x) < 4)) return;
      begun.moved = true;
      if (begun.at.shift) {
        const ends = [time(begun.at.x, p.width), time(p.x, p.width)].sort((a, b) => a - b);
        setWindowed(ends.map((ns) => Math.round(Math.min(all.to, Math.max(0, ns)))).join("-"));
      } else {
        const per = (begun.span.to - begun.span.from) / (p.width - LEFT - 4);
        const by = (p.x - begun.at.x) * per;
        show(begun.span.from - by, begun.span.to - by);
      }
    },
    up: (p) => {
      const begun = drag.current;
      drag.current = null;
      if (begun && !begun.moved) setChosen(String(hit(p)).replace("-1", ""));
    },
    leave: () => (drag.current = null),
    double: (x, width) => zoomAt(x, width, 0.4),
    wheel: (x, delta, width) => zoomAt(x, width, delta > 0 ? 1.25 : 0.8),
    key: (key) => {
      const length = span.to - span.from;
      const middle = (span.from + span.to) / 2;
      const does: Record<string, () => void> = {
        ArrowLeft: () => show(span.from - length / 5, span.to - length / 5),
        ArrowRight: () => show(span.from + length / 5, span.to + length / 5),
        ArrowUp: () => scrollTo(top - 1),
        ArrowDown: () => scrollTo(top + 1),
        "+": () => show(middle - length / 4, middle + length / 4),
        "=": () => show(middle - length / 4, middle + length / 4),
        "-": () => show(middle - length, middle + length),
        "0": () => show(all.from, all.to),
        n: () => step(1),
        p: () => step(-1),
        w: () => setWindowed(windowed === "" ? `${Math.round(span.from)}-${Math.round(span.to)}` : ""),
        Escape: () => setChosen(""),
      };
      does[key]?.();
      return key in does;
    },
  };

  return (
    <div>
      <figure>
        <figcaption>
          {timeline.basis}. Above: the longest interval of all threads at each time; a hatched band:
          something was lost then. Drag to pan, ctrl and wheel to zoom, shift and drag to choose a
          window; keys: + - 0, arrows, n and p for the longest intervals, w for the window.
        </figcaption>
        <Drawing
          name={`timeline${at}`}
          label={`timeline of ${timeline.lanes.length} threads, ${timeline.basis}; a table follows`}
          height={HEIGHT}
          theme={theme}
          handlers={handlers}
          draw={(canvas) =>
            draw(canvas, { timeline, index: indexed, span, top, selected, window, losses: run.recorder.losses }, theme)
          }
        />
        <p class="dim">
          {moment(span.from, span.to - span.from)} to {moment(span.to, span.to - span.from)} of the run
          ({duration(span.to - span.from)});{" "}
          {timeline.lanes.length > LANES
            ? `threads ${top + 1} to ${Math.min(timeline.lanes.length, top + LANES)} of ${timeline.lanes.length}`
            : `${timeline.lanes.length} threads`}{" "}
          <Copy command={`whylag explain ${run.name} --window ${windowOption(span.from, span.to)}`} />
        </p>
      </figure>
      {window && <WindowAnswer run={run} window={window} />}
      {selected >= 0 && <Selected {...props} place={selected} from={indexed.from} length={indexed.length} />}
      <Table
        title={`The longest intervals (${timeline.details.length})`}
        columns={["number", "thread", "at", "what", "command"]}
        rows={timeline.details.slice(0, 100).map((detail) => [
          <button key="n" type="button" onClick={() => go(detail.place)}>
            {detail.number}
          </button>,
          timeline.lanes[timeline.lane[detail.place] ?? 0]?.name ?? "",
          duration(timeline.from_ns[detail.place] ?? 0, 6),
          detail.text,
          <Copy key="c" command={detail.command} />,
        ])}
      />
    </div>
  );
}

function Selected(props: {
  run: RunPage;
  names: string[];
  place: number;
  from: Float64Array;
  length: Float64Array;
}) {
  const { run, place } = props;
  const { timeline } = run;
  const detail = timeline.details.find((one) => one.place === place);
  const from = props.from[place] ?? 0;
  const length = props.length[place] ?? 0;
  const lane = timeline.lanes[timeline.lane[place] ?? 0];
  return (
    <aside class="selected">
      <h4>
        {lane?.name}: {duration(length)} at {duration(from, 6)}, {props.names[timeline.class[place] ?? 0]}
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
function WindowAnswer({ run, window }: { run: RunPage; window: Span }) {
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
