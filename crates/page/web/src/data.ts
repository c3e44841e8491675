// Where the data come from: the file itself, or the server that gave this page.
import type { Page, PartAnswer, RunRow } from "./types";

export class TooOld extends Error {}

/** The page in this file; null if the page is served. */
export async function embedded(): Promise<Page | null> {
  const text = document.getElementById("data")?.textContent;
  if (text == null) return null;
  if (typeof DecompressionStream === "undefined") {
    throw new TooOld(
      "This browser is too old to show the report: it has no DecompressionStream. Chrome 80, " +
        "Firefox 113, Safari 16.4 and all later ones have it.",
    );
  }
  const characters = atob(text);
  const packed = new Uint8Array(characters.length);
  for (let at = 0; at < packed.length; at++) packed[at] = characters.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Page;
}

async function fetched<T>(path: string): Promise<T> {
  const response = await fetch(path);
  if (!response.ok) throw new Error((await response.text()).trim());
  return (await response.json()) as T;
}

export const runs = () => fetched<RunRow[]>("runs.json");

export const page = (run: string, other: string) =>
  fetched<Page>(`run/${encodeURIComponent(run)}${other ? `?with=${encodeURIComponent(other)}` : ""}`);

export const part = (run: string, from: number, to: number) =>
  fetched<PartAnswer>(
    `explain/${encodeURIComponent(run)}?from=${Math.round(from)}&to=${Math.round(to)}`,
  );

export const isServed = () => document.getElementById("data") === null;
