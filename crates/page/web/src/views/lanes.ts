// Which intervals lie in a part of time, and how they are drawn: nothing is averaged away.
import type { Timeline } from "../types";
import type { Span } from "../axis";
import type { Canvas } from "../ui";
import { fit } from "../ui";
import { lossBands, scale, timeAxis } from "../axis";
import { duration } from "../format";
import type { Loss } from "../types";
import type { Theme } from "../theme";

export const LEFT = 150;
export const OVERVIEW = 54;
export const LANE = 16;
export const LANES = 24;
export const HEIGHT = OVERVIEW + 8 + LANES * LANE + 20;

/** The intervals of a lane in time order, and how far those up to each reach. */
export interface LaneIndex {
  places: Int32Array;
  reach: Float64Array;
}

export interface Index {
  from: Float64Array;
  length: Float64Array;
  lanes: LaneIndex[];
}

export function index(timeline: Timeline): Index {
  const from = Float64Array.from(timeline.from_ns);
  const length = Float64Array.from(timeline.length_ns);
  const counts = new Int32Array(timeline.lanes.length);
  for (const lane of timeline.lane) counts[lane] = (counts[lane] ?? 0) + 1;
  const lanes: LaneIndex[] = timeline.lanes.map((_, lane) => ({
    places: new Int32Array(counts[lane] ?? 0),
    reach: new Float64Array(counts[lane] ?? 0),
  }));
  counts.fill(0);
  timeline.lane.forEach((lane, place) => {
    const at = counts[lane] ?? 0;
    const of = lanes[lane];
    if (!of) return;
    of.places[at] = place;
    const end = (from[place] ?? 0) + (length[place] ?? 0);
    of.reach[at] = at === 0 ? end : Math.max(end, of.reach[at - 1] ?? 0);
    counts[lane] = at + 1;
  });
  return { from, length, lanes };
}

/** The first in a lane that can reach into the time after `at`. */
export function first(lane: LaneIndex, at: number): number {
  let [low, high] = [0, lane.reach.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lane.reach[middle] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface View {
  timeline: Timeline;
  index: Index;
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
    if (column < 0 || column >= this.width || length <= (this.length[column] ?? 0)) return;
    this.length[column] = length;
    this.place[column] = place;
  }
}

export function draw(canvas: Canvas, view: View, theme: Theme): void {
  const { context, width, height } = canvas;
  const { span, timeline } = view;
  context.clearRect(0, 0, width, height);
  const right = width - 4;
  timeAxis(canvas, span, LEFT, right, theme);
  const overview = new Columns(Math.max(1, Math.ceil(right - LEFT)));
  for (const [lane, of] of view.index.lanes.entries()) {
    const row = lane - view.top;
    const y = OVERVIEW + 8 + row * LANE;
    drawLane(canvas, view, of, row >= 0 && row < LANES ? y : null, overview, theme);
    if (row >= 0 && row < LANES) {
      context.fillStyle = theme.dim;
      context.fillText(fit(context, timeline.lanes[lane]?.name ?? "", LEFT - 8), 0, y + LANE / 2);
    }
  }
  drawOverview(canvas, view, overview, theme);
  lossBands(canvas, view.losses, span, LEFT, right, height - 20, theme);
  drawArrow(canvas, view, theme);
  if (view.window) {
    const x = scale(span, LEFT, right);
    context.strokeStyle = theme.accent;
    context.strokeRect(x(view.window.from), 1, x(view.window.to) - x(view.window.from), height - 22);
  }
}

/** A lane: long intervals as they are, and of those that share a pixel the longest. */
function drawLane(
  canvas: Canvas,
  view: View,
  lane: LaneIndex,
  y: number | null,
  overview: Columns,
  theme: Theme,
): void {
  const { context } = canvas;
  const { span, timeline, index: all } = view;
  const right = canvas.width - 4;
  const perPixel = (span.to - span.from) / (right - LEFT);
  const narrow = new Columns(overview.width);
  const paint = (place: number, from: number, to: number) => {
    if (y === null) return;
    const outer = timeline.outer[place] === 1;
    context.fillStyle = theme.classes[timeline.class[place] ?? 0] ?? theme.dim;
    context.fillRect(from, outer ? y : y + 4, Math.max(1, to - from), outer ? 3 : LANE - 6);
    if (place === view.selected) {
      context.strokeStyle = theme.text;
      context.strokeRect(from - 1, y + 1, Math.max(2, to - from) + 2, LANE - 3);
    }
  };
  for (let at = first(lane, span.from); at < lane.places.length; at++) {
    const place = lane.places[at] ?? 0;
    const begin = all.from[place] ?? 0;
    if (begin >= span.to) break;
    const length = all.length[place] ?? 0;
    if (begin + length <= span.from) continue;
    const from = LEFT + Math.max(0, begin - span.from) / perPixel;
    const to = LEFT + Math.min(span.to - span.from, begin + length - span.from) / perPixel;
    const column = Math.floor(from - LEFT);
    if (timeline.outer[place] !== 1 || to - from >= 1) overview.put(column, place, length);
    for (let next = column + 1; next < to - LEFT; next++) overview.put(next, place, length);
    if (to - from >= 1) paint(place, from, to);
    else narrow.put(column, place, length);
  }
  for (let column = 0; column < narrow.width; column++) {
    if ((narrow.length[column] ?? 0) > 0) {
      paint(narrow.place[column] ?? 0, LEFT + column, LEFT + column + 1);
    }
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
    context.fillStyle = theme.classes[view.timeline.class[columns.place[column] ?? 0] ?? 0] ?? theme.dim;
    const h = height(length);
    context.fillRect(LEFT + column, OVERVIEW - h, 1, h);
  }
  context.fillStyle = theme.dim;
  context.fillText(`longest: ${duration(longest)}`, 0, 12);
  context.fillText(`(log scale, from ${duration(least)})`, 0, 28);
}

/** From the thread that ended the selected interval. */
function drawArrow(canvas: Canvas, view: View, theme: Theme): void {
  const { context, width } = canvas;
  const place = view.selected;
  const waker = view.timeline.waker[place] ?? -1;
  if (place < 0 || waker < 0) return;
  const row = (lane: number) => OVERVIEW + 8 + (lane - view.top) * LANE + LANE / 2;
  const x = scale(view.span, LEFT, width - 4)((view.index.from[place] ?? 0) + (view.index.length[place] ?? 0));
  const [from, to] = [row(waker), row(view.timeline.lane[place] ?? 0)];
  if (x < LEFT || x > width || from === to) return;
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
