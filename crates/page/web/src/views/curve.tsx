// A plot of curves: uPlot, made again where its data change and as wide as its place.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Theme } from "../theme";

/** Pixels that the name of a tick takes. */
const NAME = 38;

export interface Curves {
  x: number[];
  /** One list for each curve; null where it has no point. */
  y: (number | null)[][];
  /** The last two are a band, without lines. */
  band?: boolean;
  /** The curve that is only a level to compare with: no values. */
  level?: number;
  logarithmicX?: boolean;
  logarithmicY?: boolean;
  /** Ticks of x, if all of these are wanted. */
  ticks?: number[];
  nameX: (value: number) => string;
  nameY: (value: number) => string;
  height: number;
}

/** The first curve is solid, the second dashed. */
export function Curve({ curves, theme }: { curves: Curves; theme: Theme }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const options = optionsOf(curves, theme, element.clientWidth);
    const plot = new uPlot(options, [curves.x, ...curves.y] as uPlot.AlignedData, element);
    const resized = () => plot.setSize({ width: element.clientWidth, height: curves.height });
    const observer = new ResizeObserver(resized);
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [curves, theme]);
  return <div ref={place} class="plot" />;
}

function optionsOf(curves: Curves, theme: Theme, width: number): uPlot.Options {
  const lines = curves.y.length - (curves.band ? 2 : 0);
  const grid = { stroke: theme.line, width: 1 };
  const powers: uPlot.Axis.Filter = (_, splits) =>
    splits.map((s) => (Math.abs(Math.log10(s) - Math.round(Math.log10(s))) < 1e-9 ? s : null));
  const byPowers = { filter: powers, grid: { ...grid, filter: powers }, ticks: { ...grid, filter: powers } };
  const names = (name: (value: number) => string) => (_: uPlot, splits: number[]) =>
    splits.map((s) => (s === null ? "" : name(s)));
  // Of names that would lie over each other the later one is left out, but never the last.
  const apart: uPlot.Axis.DynamicValues = (plot, splits) => {
    const end = plot.valToPos(splits[splits.length - 1] ?? 0, "x");
    let taken = -Infinity;
    return splits.map((split, place) => {
      const at = plot.valToPos(split, "x");
      const isLast = place === splits.length - 1;
      if (!isLast && (at - taken < NAME || end - at < NAME)) return "";
      taken = at;
      return curves.nameX(split);
    });
  };
  const { ticks } = curves;
  return {
    width,
    height: curves.height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, distr: curves.logarithmicX ? 3 : 1 },
      y: { distr: curves.logarithmicY ? 3 : 1 },
    },
    axes: [
      {
        stroke: theme.dim,
        grid,
        space: 30,
        values: ticks ? apart : names(curves.nameX),
        ...(ticks ? { splits: () => ticks } : {}),
        ...(curves.logarithmicX ? byPowers : {}),
      },
      {
        stroke: theme.dim,
        grid,
        size: 64,
        values: names(curves.nameY),
        ...(curves.logarithmicY ? byPowers : {}),
      },
    ],
    series: [
      {},
      ...curves.y.map((_, number) => ({
        stroke: number >= lines ? "transparent" : number === 0 ? theme.accent : theme.dim,
        width: 2,
        spanGaps: true,
        points: { show: number < lines && number !== curves.level },
        ...(number === 1 && number < lines ? { dash: [6, 4] } : {}),
      })),
    ],
    ...(curves.band ? { bands: [{ series: [lines + 2, lines + 1] as [number, number], fill: `${theme.accent}33` }] } : {}),
  };
}
