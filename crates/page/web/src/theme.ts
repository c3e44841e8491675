// Colours for canvases: those of the classes come from the binary, the others from the style.
import type { ClassColors } from "./types";

export interface Theme {
  classes: string[];
  text: string;
  dim: string;
  line: string;
  ground: string;
  accent: string;
  loss: string;
  warning: string;
  /** From few to many. */
  ramp: (share: number) => string;
}

/** White where it can be read on a colour (`#rrggbb`), that is with a contrast of 4 at least; else black. */
export function inkOn(color: string): string {
  const part = (at: number) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return luminance > 0.2125 ? "#101418" : "#ffffff";
}

export function isDark(wanted: string): boolean {
  if (wanted !== "") return wanted === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function theme(classes: ClassColors[], dark: boolean): Theme {
  const of = (name: string) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return {
    classes: classes.map((c) => (dark ? c.dark : c.light)),
    text: of("--text"),
    dim: of("--dim"),
    line: of("--line"),
    ground: of("--ground"),
    accent: of("--accent"),
    loss: of("--loss"),
    warning: of("--warning"),
    // Never fainter than 30 %: one value has to be seen.
    ramp: (share) => {
      const at = 0.3 + 0.7 * Math.min(1, Math.max(0, share));
      return dark
        ? `rgb(${Math.round(40 + 150 * at * at)},${Math.round(70 + 150 * at)},${Math.round(120 + 130 * at)})`
        : `rgb(${Math.round(225 - 215 * at)},${Math.round(235 - 175 * at)},${Math.round(250 - 110 * at)})`;
    },
  };
}
