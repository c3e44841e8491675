// The axis of time under a picture, and the bands of what was lost.
import type { Canvas } from "./ui";
import { moment, ticks } from "./format";
import type { Loss } from "./types";
import type { Theme } from "./theme";

export interface Span {
  from: number;
  to: number;
}

/** From a moment to a place, left and right being where the picture begins and ends. */
export function scale(span: Span, left: number, right: number): (ns: number) => number {
  const width = right - left;
  return (ns) => left + ((ns - span.from) / (span.to - span.from)) * width;
}

/** Ticks with their moments: seconds since the start of the run. */
export function timeAxis(
  { context, height }: Canvas,
  span: Span,
  left: number,
  right: number,
  theme: Theme,
): void {
  const x = scale(span, left, right);
  context.fillStyle = theme.dim;
  context.strokeStyle = theme.line;
  context.textAlign = "center";
  for (const at of ticks(span.from, span.to, (right - left) / 110)) {
    context.beginPath();
    context.moveTo(x(at), 0);
    context.lineTo(x(at), height - 18);
    context.stroke();
    const place = Math.min(right - 24, Math.max(left + 24, x(at)));
    context.fillText(moment(at, span.to - span.from), place, height - 8);
  }
  context.textAlign = "left";
}

/** Losses that overlap or touch are one band. */
function merged(losses: Loss[]): Pick<Loss, "from_ns" | "to_ns">[] {
  const bands: { from_ns: number; to_ns: number }[] = [];
  for (const { from_ns, to_ns } of [...losses].sort((a, b) => a.from_ns - b.from_ns)) {
    const last = bands[bands.length - 1];
    if (last && from_ns <= last.to_ns) last.to_ns = Math.max(last.to_ns, to_ns);
    else bands.push({ from_ns, to_ns });
  }
  return bands;
}

/** What captions add where a picture has such bands. */
export const bandsInWords = (losses: Loss[]) =>
  losses.length > 0 ? " Hatched in red: something was lost then (see Cost and losses)." : "";

/** Times in which something was lost: hatched, never left out. */
export function lossBands(
  { context }: Canvas,
  losses: Loss[],
  span: Span,
  left: number,
  right: number,
  bottom: number,
  theme: Theme,
): void {
  const x = scale(span, left, right);
  context.save();
  context.beginPath();
  context.rect(left, 0, right - left, bottom);
  context.clip();
  for (const { from_ns, to_ns } of merged(losses)) {
    if (to_ns < span.from || from_ns > span.to) continue;
    const from = Math.max(left, x(from_ns));
    const to = Math.max(from + 2, Math.min(right, x(to_ns)));
    context.fillStyle = theme.loss;
    context.globalAlpha = 0.06;
    context.fillRect(from, 0, to - from, bottom);
    context.globalAlpha = 0.3;
    context.strokeStyle = theme.loss;
    context.beginPath();
    for (let at = from - bottom; at < to; at += 14) {
      context.moveTo(Math.max(from, at), at < from ? bottom - (from - at) : bottom);
      const end = Math.min(to, at + bottom);
      context.lineTo(end, bottom - (end - at));
    }
    context.stroke();
    // Its ends are seen over the busiest picture, too.
    context.globalAlpha = 1;
    context.fillRect(from, bottom - 3, to - from, 3);
  }
  context.restore();
}
