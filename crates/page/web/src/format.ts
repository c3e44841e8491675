// How numbers look on axes. Everything else comes as text from the binary.

/** A duration with the unit that fits it: 1.5 ms. */
export function duration(ns: number, digits = 3): string {
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "us"],
    [1, "ns"],
  ];
  const [size, unit] = units.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  const value = ns / size;
  return `${Number(value.toPrecision(digits))} ${unit}`;
}

/** As whylag writes a part of a whole. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "<0.1 %";
  if (share < 1 && share > 0.999) return ">99.9 %";
  return `${(share * 100).toFixed(1)} %`;
}

export function count(n: number): string {
  return n.toLocaleString("en-US");
}

/** Round steps of about `wanted` in number between two moments. */
export function ticks(from: number, to: number, wanted: number): number[] {
  const span = to - from;
  if (!(span > 0)) return [];
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

/** A moment on an axis: as many digits as the distance of its ticks needs. */
export function moment(ns: number, span: number): string {
  if (span >= 2e9 || ns === 0) return `${Number((ns / 1e9).toFixed(span >= 2e10 ? 0 : 1))} s`;
  const digits = Math.max(0, Math.ceil(Math.log10(1e10 / span)));
  return `${(ns / 1e9).toFixed(Math.min(9, digits))} s`;
}

/** What `--window` takes. */
export function windowOption(from: number, to: number): string {
  const seconds = (ns: number) => String(Number((ns / 1e9).toFixed(9)));
  return `${seconds(from)}..${seconds(to)}s`;
}
