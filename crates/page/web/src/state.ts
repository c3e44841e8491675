// The state of every view is in the address, so that a link shows what its sender saw.
import { useEffect, useState } from "preact/hooks";

const listeners = new Set<() => void>();

function read(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1));
}

export function get(name: string): string {
  return read().get(name) ?? "";
}

/** Sets values; an empty one is left out. */
export function set(values: Record<string, string>): void {
  const all = read();
  for (const [name, value] of Object.entries(values)) {
    if (value === "") all.delete(name);
    else all.set(name, value);
  }
  history.replaceState(null, "", `#${all.toString()}`);
  for (const listener of listeners) listener();
}

/** A value of the address, and how to set it. */
export function useParam(name: string): [string, (value: string) => void] {
  const [value, setValue] = useState(get(name));
  useEffect(() => {
    const changed = () => setValue(get(name));
    changed();
    listeners.add(changed);
    addEventListener("hashchange", changed);
    return () => {
      listeners.delete(changed);
      removeEventListener("hashchange", changed);
    };
  }, [name]);
  return [value, (next) => set({ [name]: next })];
}
