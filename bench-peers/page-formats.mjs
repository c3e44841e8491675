// A run, or a million made-up waits, in the formats that other viewers read.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const MILLION = 1_000_000;

/** The intervals that a run file has kept whole: thread, name, begin and length in us, and functions. */
export function ofRun(file) {
  const lines = gunzipSync(readFileSync(file)).toString().split("\n");
  const batches = lines.filter((line) => line !== "").map((line) => JSON.parse(line).batch ?? {});
  const stacks = new Map();
  for (const { id, frames } of batches.flatMap((batch) => batch.stacks ?? [])) {
    stacks.set(id, frames.map((frame) => frame.symbol ?? frame.module ?? "unknown"));
  }
  return batches
    .flatMap((batch) => batch.outliers ?? [])
    .map((one) => ({
      tid: one.tid,
      comm: one.comm,
      name: one.blocked ?? one.kind,
      ts: one.start_ns / 1000,
      dur: one.duration_ns / 1000,
      functions: [one.kernel_stack, one.user_stack].flatMap((id) => stacks.get(id) ?? []),
    }));
}

/** The waits of crates/page/tests/made_up.rs by number, length and thread. */
export function* aMillion() {
  for (let n = 0; n < MILLION; n++) {
    const tid = 1 + (n % 40);
    yield { tid, comm: `worker-${tid}`, name: "waits", ts: n * 600, dur: 20 + (n % 180), functions: ["waits"] };
  }
}

/** In Chrome's trace format. */
export function writeTrace(file, intervals) {
  const event = ({ tid, name, ts, dur }) => JSON.stringify({ ph: "X", pid: 1, tid, name, ts, dur });
  write(file, "[", intervals, event, ",", "]");
}

/** As `perf script` writes samples: one at the end of each interval. */
export function writeSamples(file, intervals) {
  const sample = ({ tid, comm, ts, dur, functions }) =>
    [
      `${comm} ${tid} [000] ${((ts + dur) / 1e6).toFixed(6)}: ${Math.round(dur * 1000)} off-cpu: `,
      ...functions.map((name) => `\t    ffff ${name} (whylag)`),
      "",
      "",
    ].join("\n");
  write(file, "", intervals, sample, "", "");
}

/** Some at a time: a string has an end. */
function write(file, begin, all, text, between, end) {
  const out = openSync(file, "w");
  writeSync(out, begin);
  let [some, first] = [[], true];
  const flush = () => {
    writeSync(out, (first ? "" : between) + some.join(between));
    [some, first] = [[], false];
  };
  for (const one of all) {
    some.push(text(one));
    if (some.length === 10_000) flush();
  }
  if (some.length > 0) flush();
  writeSync(out, end);
  closeSync(out);
}
