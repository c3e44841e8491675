// Reads what crates/page/src/wire.rs writes: a line of JSON, and behind it the intervals of each run.
import type { Page, RunPage, Timeline } from "./types";

/** Those of a lane lie beside each other, in time order. Times are ns since the start of the run. */
export interface Intervals {
  from: Float64Array;
  length: Float64Array;
  /** How far those of its lane up to each reach. */
  reach: Float64Array;
  /** Place of the class; 128 more for a whole system call. */
  kind: Uint8Array;
  /** Lane of the thread that ended each; -1 for none. */
  waker: Int32Array;
  /** Place of the first of each lane, and behind the last lane the number of all. */
  begin: Int32Array;
}

export interface ShownRun extends RunPage {
  intervals: Intervals;
}

export interface ShownPage extends Page {
  runs: ShownRun[];
}

export const isOuter = (all: Intervals, place: number) => ((all.kind[place] ?? 0) & 128) !== 0;
export const classOf = (all: Intervals, place: number) => (all.kind[place] ?? 0) & 127;

/** The lane that an interval lies in. */
export function laneOf(all: Intervals, place: number): number {
  let lane = 0;
  while (lane + 2 < all.begin.length && (all.begin[lane + 1] ?? 0) <= place) lane++;
  return lane;
}

export function read(bytes: Uint8Array): ShownPage {
  const end = bytes.indexOf(10);
  const page = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))) as Page;
  const reader = new Reader(bytes, end + 1);
  return { ...page, runs: page.runs.map((run) => ({ ...run, intervals: intervals(run.timeline, reader) })) };
}

class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  number(): number {
    let byte = this.bytes[this.at++] ?? 0;
    if (byte < 128) return byte;
    let value = byte & 127;
    // No shifts: they would cut a number to 32 bits.
    for (let unit = 128; byte >= 128; unit *= 128) {
      byte = this.bytes[this.at++] ?? 0;
      value += (byte & 127) * unit;
    }
    return value;
  }

  take(n: number): Uint8Array {
    this.at += n;
    return this.bytes.subarray(this.at - n, this.at);
  }
}

function intervals(timeline: Timeline, reader: Reader): Intervals {
  const begin = new Int32Array(timeline.lanes.length + 1);
  timeline.lanes.forEach((lane, place) => (begin[place + 1] = (begin[place] ?? 0) + lane.n));
  const n = begin[timeline.lanes.length] ?? 0;
  const [from, length, reach] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  const waker = new Int32Array(n);
  for (let lane = 0; lane + 1 < begin.length; lane++) {
    let last = 0;
    for (let at = begin[lane] ?? 0; at < (begin[lane + 1] ?? 0); at++) {
      last += reader.number();
      from[at] = last;
    }
  }
  for (let at = 0; at < n; at++) length[at] = reader.number();
  const kind = reader.take(n);
  for (let at = 0; at < n; at++) waker[at] = reader.number() - 1;
  for (let lane = 0; lane + 1 < begin.length; lane++) {
    let furthest = 0;
    for (let at = begin[lane] ?? 0; at < (begin[lane + 1] ?? 0); at++) {
      furthest = Math.max(furthest, (from[at] ?? 0) + (length[at] ?? 0));
      reach[at] = furthest;
    }
  }
  return { from, length, reach, kind, waker, begin };
}
