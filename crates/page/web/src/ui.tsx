// Small parts that views share.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Theme } from "./theme";

/** A command and a button that copies it. */
export function Copy({ command }: { command: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    const area = document.createElement("textarea");
    area.value = command;
    document.body.append(area);
    area.select();
    // From a file there is no navigator.clipboard.
    const done = document.execCommand("copy");
    area.remove();
    setCopied(done);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span class="command">
      <code>{command}</code>
      <button type="button" onClick={copy} aria-label={`copy ${command}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

type Cell = string | number | ComponentChildren;

/** The table behind a picture. */
export function Table(props: { title: string; columns: string[]; rows: Cell[][]; open?: boolean }) {
  const { title, columns, rows, open } = props;
  return (
    <details class="table" open={open ?? false}>
      <summary>{title}</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, number) => (
              <tr key={number}>
                {row.map((cell, place) => (
                  <td key={place}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

export interface Canvas {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
}

type Place = { current: HTMLCanvasElement | null };

/** How wide it is now. */
function useWidth(canvas: Place): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Draws in the frame after each change. */
function useFrames(paint: () => void): void {
  const latest = useRef(paint);
  const frame = useRef(0);
  // Asked for with the change and not after it was painted: else each step takes two frames more.
  // A frame that was asked for is not put off by the next change, it draws what is the latest then.
  useLayoutEffect(() => {
    latest.current = paint;
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      latest.current();
    });
  });
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
}

/** A wheel that zooms must not scroll the page: preact's own listeners cannot prevent that. */
function useWheel(canvas: Place, wheel: Handlers["wheel"]): void {
  useEffect(() => {
    const element = canvas.current;
    if (!element || !wheel) return;
    const turned = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      wheel(event.offsetX, event.deltaY, element.clientWidth);
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  }, [wheel]);
}

/** Sharp on any screen; counts in `data-drawn` how often. */
function paintOn(element: HTMLCanvasElement, width: number, height: number, draw: (canvas: Canvas) => void): void {
  const context = element.getContext("2d", { willReadFrequently: false });
  if (!context) return;
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  // To set these makes the canvas anew.
  if (element.width !== wide) element.width = wide;
  if (element.height !== high) element.height = high;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  draw({ context, width, height });
  element.dataset["drawn"] = String(Number(element.dataset["drawn"] ?? "0") + 1);
}

/** A canvas as wide as its place, drawn again whenever `draw` changes. */
export function Drawing(props: {
  label: string;
  height: number;
  draw: (canvas: Canvas) => void;
  theme: Theme;
  name: string;
  handlers?: Handlers;
}) {
  const { height, draw, handlers: of } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  useFrames(() => {
    if (canvas.current && width > 0) paintOn(canvas.current, width, height, draw);
  });
  useWheel(canvas, of?.wheel);
  const at = (event: PointerEvent): Pointer => ({
    x: event.offsetX,
    y: event.offsetY,
    width: canvas.current?.clientWidth ?? 1,
    shift: event.shiftKey,
  });
  return (
    <canvas
      ref={canvas}
      id={props.name}
      class="drawing"
      style={{ height: `${height}px` }}
      role="img"
      tabIndex={0}
      aria-label={props.label}
      onPointerDown={(event) => {
        canvas.current?.setPointerCapture(event.pointerId);
        of?.down?.(at(event));
      }}
      onPointerMove={(event) => of?.move?.(at(event))}
      onPointerUp={(event) => of?.up?.(at(event))}
      onPointerLeave={() => of?.leave?.()}
      onDblClick={(event) => of?.double?.(event.offsetX, canvas.current?.clientWidth ?? 1)}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (of?.key?.(event.key)) {
          event.preventDefault();
          event.stopPropagation();
        }
      }}
    />
  );
}

export interface Pointer {
  x: number;
  y: number;
  width: number;
  shift: boolean;
}

export interface Handlers {
  down?: (at: Pointer) => void;
  move?: (at: Pointer) => void;
  up?: (at: Pointer) => void;
  leave?: () => void;
  double?: (x: number, width: number) => void;
  wheel?: (x: number, delta: number, width: number) => void;
  /** True if the key meant something. */
  key?: (key: string) => boolean;
}

/** As much of a text as fits, with three dots where it is cut. */
export function fit(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 18) return "";
  // A name may have ten thousand characters: what cannot fit is not measured.
  const most = Math.max(1, Math.floor(width / 3));
  let kept = text.length > most ? text.slice(0, most) : text;
  if (kept === text && context.measureText(text).width <= width) return text;
  while (kept.length > 1 && context.measureText(`${kept}...`).width > width) {
    kept = kept.slice(0, Math.max(1, Math.floor(kept.length * 0.85)));
  }
  return kept.length > 1 ? `${kept}...` : "";
}

/** The classes with their colours, those alone that `used` accepts. */
export function Legend(props: { names: string[]; theme: Theme; used: (place: number) => boolean }) {
  return (
    <ul class="legend">
      {props.names.map((name, place) =>
        props.used(place) ? (
          <li key={name}>
            <span class="swatch" style={{ background: props.theme.classes[place] ?? "" }} />
            {name}
          </li>
        ) : null,
      )}
    </ul>
  );
}
