// Where the data come from: the file itself, or the server that gave this page.
import type { CheckupPage, GridPage, PartAnswer, RunRow, TrendPage } from "./types";
import { read, type ShownPage } from "./wire";

export class TooOld extends Error {}

/** The page in this file; null if the page is served. */
export async function embedded(): Promise<ShownPage | null> {
  const text = document.getElementById("data")?.textContent;
  if (text == null) return null;
  if (typeof DecompressionStream === "undefined") {
    throw new TooOld(
      "This browser is too old to show the report: it has no DecompressionStream. Chrome 80, " +
        "Firefox 113, Safari 16.4 and all later ones have it.",
    );
  }
  const stream = new Blob([unpacked(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return read(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** The bytes of a base64 text. */
function unpacked(text: string): Uint8Array<ArrayBuffer> {
  // Browsers of 2025 and later have this, which takes a tenth of the time.
  const decoder = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (decoder.fromBase64) return decoder.fromBase64(text);
  const characters = atob(text);
  const packed = new Uint8Array(characters.length);
  for (let at = 0; at < packed.length; at++) packed[at] = characters.charCodeAt(at);
  return packed;
}

async function answered(path: string): Promise<Response> {
  const response = await fetch(path);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}

const json = async <T>(path: string) => (await (await answered(path)).json()) as T;

export const runs = () => json<RunRow[]>("runs.json");
export const grids = () => json<GridPage[]>("grids.json");
export const trends = () => json<TrendPage[]>("trends.json");

/** This host now, beside a run if one is named. */
export const checkup = (run: string) =>
  json<CheckupPage>(`checkup.json${run ? `?with=${encodeURIComponent(run)}` : ""}`);

export async function page(run: string, other: string): Promise<ShownPage> {
  const beside = other ? `?with=${encodeURIComponent(other)}` : "";
  const response = await answered(`run/${encodeURIComponent(run)}${beside}`);
  return read(new Uint8Array(await response.arrayBuffer()));
}

export const part = (run: string, from: number, to: number) =>
  json<PartAnswer>(`explain/${encodeURIComponent(run)}?from=${Math.round(from)}&to=${Math.round(to)}`);

export const isServed = () => document.getElementById("data") === null;
