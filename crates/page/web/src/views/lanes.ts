// Which intervals lie in a part of time, and how they are drawn: nothing is averaged away.
import type { Timeline } from "../types";
import type { Span } from "../axis";
import type { Canvas } from "../ui";
import { fit } from "../ui";
import { lossBands, scale, timeAxis } from "../axis";
import { duration } from "../format";
import type { Loss } from "../types";
import type { Theme } from "../theme";
import { classOf, type Intervals, isOuter, laneOf } from "../wire";

export const OVERVIEW = 54;
export const LANE = 16;
/** Threads that are seen at once. */
export const LANES = 24;

/** Where the picture begins, right of the names. */
export const leftOf = (width: number) => Math.min(150, Math.round(width * 0.3));
export const heightOf = (lanes: number) => OVERVIEW + 8 + Math.min(LANES, lanes) * LANE + 20;

/** The first in a lane that can reach into the time after `at`. */
export function first(all: Intervals, lane: number, at: number): number {
  let [low, high] = [all.begin[lane] ?? 0, all.begin[lane + 1] ?? 0];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all.reach[middle] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface View {
  timeline: Timeline;
  all: Intervals;
  span: Span;
  top: number;
  selected: number;
  window: Span | null;
  losses: Loss[];
}

/** The longest interval of each column of pixels; where it is 0 there is none. */
class Columns {
  readonly length: Float64Array;
  readonly place: Int32Array;
  constructor(readonly width: number) {
    this.length = new Float64Array(width);
    this.place = new Int32Array(width);
  }
  put(column: number, place: number, length: number): void {
    if (length > (this.length[column] ?? Infinity)) {
      this.length[column] = length;
      this.place[column] = place;
    }
  }
}

/** Intervals that take several columns. */
class Spans {
  private readonly all: { place: number; length: number; from: number; to: number }[] = [];
  add(place: number, length: number, from: number, to: number): void {
    this.all.push({ place, length, from, to });
  }
  /** The longest first: a column that one of them has is not looked at again, however many have it. */
  putInto(columns: Columns): void {
    const next = Int32Array.from({ length: columns.width + 1 }, (_, column) => column);
    const free = (column: number): number => {
      let at = column;
      while (at < columns.width && next[at] !== at) at = next[at] ?? columns.width;
      for (let passed = column; passed < at; ) {
        const after = next[passed] ?? at;
        next[passed] = at;
        passed = after;
      }
      return at;
    };
    this.all.sort((a, b) => b.length - a.length);
    for (const { place, length, from, to } of this.all) {
      for (let column = free(from); column < to; column = free(column)) {
        columns.put(column, place, length);
        next[column] = column + 1;
      }
    }
  }
}

export function draw(canvas: Canvas, view: View, theme: Theme): void {
  const { context, width, height } = canvas;
  const { span, timeline } = view;
  context.clearRect(0, 0, width, height);
  const [left, right] = [leftOf(width), width - 4];
  timeAxis(canvas, span, left, right, theme);
  const overview = new Columns(Math.max(1, Math.ceil(right - left)));
  const narrow = new Columns(overview.width);
  const wide = new Spans();
  for (const [lane, { name }] of timeline.lanes.entries()) {
    const row = lane - view.top;
    const y = OVERVIEW + 8 + row * LANE;
    const seen = row >= 0 && row < LANES;
    const paint = seen ? painter(canvas, view, y, theme) : null;
    walkLane(view, lane, overview, wide, narrow, paint);
    if (paint === null) continue;
    paintNarrow(view, narrow, paint);
    context.fillStyle = theme.dim;
    context.fillText(fit(context, name, left - 8), 0, y + LANE / 2);
  }
  wide.putInto(overview);
  drawOverview(canvas, view, overview, theme);
  lossBands(canvas, view.losses, span, left, right, height - 20, theme);
  drawArrow(canvas, view, theme);
  if (view.window) {
    const x = scale(span, left, right);
    context.strokeStyle = theme.accent;
    context.strokeRect(x(view.window.from), 1, x(view.window.to) - x(view.window.from), height - 22);
  }
}

/** Draws an interval from one place to another, in pixels from the left of the lane. */
type Paint = (place: number, from: number, to: number) => void;

function painter({ context, width: whole }: Canvas, { all, selected }: View, y: number, theme: Theme): Paint {
  const begin = leftOf(whole);
  return (place, from, to) => {
    const outer = isOuter(all, place);
    const [left, width] = [begin + from, Math.max(1, to - from)];
    context.fillStyle = theme.classes[classOf(all, place)] ?? theme.dim;
    context.fillRect(left, outer ? y : y + 4, width, outer ? 3 : LANE - 6);
    if (place === selected) {
      context.strokeStyle = theme.text;
      context.strokeRect(left - 1, y + 1, Math.max(2, width) + 2, LANE - 3);
    }
  };
}

/** All of a lane: what is a pixel long is drawn, and of what is shorter `narrow` has the longest. */
function walkLane(
  view: View,
  lane: number,
  overview: Columns,
  wide: Spans,
  narrow: Columns,
  paint: Paint | null,
): void {
  const { from, length, kind, begin } = view.all;
  const { span } = view;
  const perPixel = (span.to - span.from) / overview.width;
  if (paint) narrow.length.fill(0);
  const end = begin[lane + 1] ?? 0;
  for (let at = first(view.all, lane, span.from); at < end; at++) {
    const start = from[at] ?? 0;
    if (start >= span.to) break;
    const long = length[at] ?? 0;
    if (start + long <= span.from) continue;
    const left = Math.max(0, start - span.from) / perPixel;
    const right = Math.min(overview.width, (start + long - span.from) / perPixel);
    const column = Math.floor(left);
    if (right - left < 1) {
      if (((kind[at] ?? 0) & 128) === 0) overview.put(column, at, long);
      if (right > column + 1) overview.put(column + 1, at, long);
      if (paint) narrow.put(column, at, long);
      continue;
    }
    wide.add(at, long, column, Math.min(overview.width, Math.ceil(right)));
    paint?.(at, left, right);
  }
}

/** Neighbours that look alike are one rectangle: a lane may have a thousand. */
function paintNarrow({ all, selected }: View, narrow: Columns, paint: Paint): void {
  const { length, place, width } = narrow;
  let from = 0;
  while (from < width) {
    const at = place[from] ?? 0;
    let to = from + 1;
    if ((length[from] ?? 0) > 0) {
      const alike = (other: number) => at !== selected && other !== selected && all.kind[other] === all.kind[at];
      while (to < width && (length[to] ?? 0) > 0 && alike(place[to] ?? 0)) to++;
      paint(at, from, to);
    }
    from = to;
  }
}

/** Over all lanes, seen or not: how long the longest interval is at each time, logarithmically. */
function drawOverview(canvas: Canvas, view: View, columns: Columns, theme: Theme): void {
  const { context } = canvas;
  const longest = columns.length.reduce((most, length) => Math.max(most, length), 1);
  const least = columns.length.reduce((few, length) => (length > 0 ? Math.min(few, length) : few), longest);
  const low = Math.log10(least) - 0.5;
  const height = (length: number) =>
    Math.max(2, ((Math.log10(length) - low) / Math.max(0.5, Math.log10(longest) - low)) * (OVERVIEW - 6));
  for (let column = 0; column < columns.width; column++) {
    const length = columns.length[column] ?? 0;
    if (length === 0) continue;
    context.fillStyle = theme.classes[classOf(view.all, columns.place[column] ?? 0)] ?? theme.dim;
    const h = height(length);
    context.fillRect(leftOf(canvas.width) + column, OVERVIEW - h, 1, h);
  }
  context.fillStyle = theme.dim;
  const room = leftOf(canvas.width) - 8;
  context.fillText(fit(context, `longest: ${duration(longest)}`, room), 0, 12);
  context.fillText(fit(context, `log scale, from ${duration(least)}`, room), 0, 28);
}

/** From the thread that ended the selected interval. */
function drawArrow(canvas: Canvas, view: View, theme: Theme): void {
  const { context, width } = canvas;
  const place = view.selected;
  const waker = view.all.waker[place] ?? -1;
  if (place < 0 || waker < 0) return;
  const row = (lane: number) => OVERVIEW + 8 + (lane - view.top) * LANE + LANE / 2;
  const left = leftOf(width);
  const x = scale(view.span, left, width - 4)((view.all.from[place] ?? 0) + (view.all.length[place] ?? 0));
  const [from, to] = [row(waker), row(laneOf(view.all, place))];
  if (x < left || x > width || from === to) return;
  const end = Math.max(OVERVIEW, from);
  context.strokeStyle = theme.text;
  context.beginPath();
  context.moveTo(x, end);
  context.lineTo(x, to);
  const head = Math.sign(end - to) * 5;
  context.moveTo(x - 3, to + head);
  context.lineTo(x, to);
  context.lineTo(x + 3, to + head);
  context.stroke();
}
