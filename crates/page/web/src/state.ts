// The state of every view is in the address, so that a link shows what its sender saw.
import { useEffect, useState } from "preact/hooks";

/** Least time between two changes of the address: browsers refuse more than 200 in 30 s. */
const EVERY_MS = 200;

const listeners = new Set<() => void>();
let state = new URLSearchParams(location.hash.slice(1));
let changedAt = -EVERY_MS;
let waiting: ReturnType<typeof setTimeout> | undefined;

addEventListener("hashchange", () => {
  clearTimeout(waiting);
  waiting = undefined;
  state = new URLSearchParams(location.hash.slice(1));
  for (const listener of listeners) listener();
});

function write(): void {
  waiting = undefined;
  changedAt = performance.now();
  history.replaceState(null, "", `#${state.toString()}`);
}

export function get(name: string): string {
  return state.get(name) ?? "";
}

/** Sets values; an empty one is left out. */
export function set(values: Record<string, string>): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === "") state.delete(name);
    else state.set(name, value);
  }
  waiting ??= setTimeout(write, Math.max(0, changedAt + EVERY_MS - performance.now()));
  for (const listener of listeners) listener();
}

/** A value of the address, and how to set it. */
export function useParam(name: string): [string, (value: string) => void] {
  const [value, setValue] = useState(get(name));
  useEffect(() => {
    const changed = () => setValue(get(name));
    changed();
    listeners.add(changed);
    return () => {
      listeners.delete(changed);
    };
  }, [name]);
  return [value, (next) => set({ [name]: next })];
}
