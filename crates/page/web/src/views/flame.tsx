// Stacks of time off the CPU, the outermost function above.
import { useMemo, useState } from "preact/hooks";
import type { RunPage, Tree } from "../types";
import type { Theme } from "../theme";
import { duration, percent } from "../format";
import { useParam } from "../state";
import { type Canvas, Drawing, fit, type Handlers, Table } from "../ui";

const ROW = 18;

interface Box {
  place: number;
  x: number;
  width: number;
  row: number;
}

/** Where each frame lies, as parts of the width, below the frame `root`. */
function layout(tree: Tree, root: number): Box[] {
  const boxes: Box[] = [];
  const depth = tree.depth[root] ?? 0;
  const whole = tree.ns[root] ?? 1;
  // What is above the root is as wide as all.
  for (let place = root, wanted = depth; place >= 0; place--) {
    if ((tree.depth[place] ?? 0) === wanted) {
      boxes.push({ place, x: 0, width: 1, row: wanted });
      wanted--;
    }
  }
  const next: number[] = [];
  next[depth + 1] = 0;
  for (let place = root + 1; place < tree.name.length; place++) {
    const row = tree.depth[place] ?? 0;
    if (row <= depth) break;
    const width = (tree.ns[place] ?? 0) / whole;
    const x = next[row] ?? 0;
    next[row] = x + width;
    next[row + 1] = x;
    boxes.push({ place, x, width, row });
  }
  return boxes;
}

export function Flame({ run, theme, at }: { run: RunPage; theme: Theme; at: string }) {
  const { flames } = run;
  const [account, setAccount] = useParam("account");
  const [root, setRoot] = useParam(`frame${at}`);
  const [search, setSearch] = useParam("search");
  const [over, setOver] = useState(-1);
  const tree = flames.trees.find((one) => one.account === account) ?? flames.trees[0];
  const from = Math.min(Number(root) || 0, (tree?.name.length ?? 1) - 1);
  const boxes = useMemo(() => (tree ? layout(tree, from) : []), [tree, from]);
  if (!tree) return <p>No stack was taken: nothing slept as long as the threshold.</p>;
  const name = (place: number) => flames.names[tree.name[place] ?? 0] ?? "";
  const found = (place: number) => search !== "" && name(place).toLowerCase().includes(search.toLowerCase());
  const height = Math.min(900, (Math.max(...tree.depth) + 1) * ROW + 4);
  const parent = (place: number) => {
    for (let up = place - 1; up >= 0; up--) {
      if ((tree.depth[up] ?? 0) < (tree.depth[place] ?? 0)) return up;
    }
    return 0;
  };
  const hit = (x: number, y: number, width: number) => {
    const row = Math.floor(y / ROW);
    const share = x / width;
    return boxes.find((b) => b.row === row && share >= b.x && share < b.x + b.width)?.place ?? -1;
  };
  /** The frame beside, or the widest below, for the keys. */
  const move = (key: string) => {
    const place = over < 0 ? from : over;
    const box = boxes.find((b) => b.place === place);
    if (!box) return;
    const row = boxes.filter((b) => b.row === box.row).sort((a, b) => a.x - b.x);
    const beside = row[row.findIndex((b) => b.place === place) + (key === "ArrowRight" ? 1 : -1)];
    const below = boxes
      .filter((b) => b.row === box.row + 1 && b.x >= box.x - 1e-9 && b.x < box.x + box.width)
      .sort((a, b) => b.width - a.width)[0];
    const next =
      key === "ArrowUp" ? parent(place) : key === "ArrowDown" ? below?.place : beside?.place;
    if (next !== undefined) setOver(next);
  };
  const handlers: Handlers = {
    move: (p) => setOver(hit(p.x, p.y, p.width)),
    up: (p) => {
      const place = hit(p.x, p.y, p.width);
      if (place >= 0) setRoot(place === 0 ? "" : String(place));
    },
    key: (key) => {
      if (key.startsWith("Arrow")) move(key);
      else if (key === "Enter" && over >= 0) setRoot(over === 0 ? "" : String(over));
      else if (key === "Escape" || key === "0") setRoot("");
      else return false;
      return true;
    },
  };
  const draw = ({ context, width }: Canvas) => {
    context.clearRect(0, 0, width, height);
    for (const box of boxes) {
      const [x, w] = [box.x * width, box.width * width];
      if (w < 0.3) continue;
      const kind = tree.kind[box.place] ?? 0;
      context.globalAlpha = search !== "" && !found(box.place) ? 0.25 : 1;
      context.fillStyle = found(box.place)
        ? theme.accent
        : kind === 1
          ? (theme.classes[0] ?? "")
          : kind === 2
            ? (theme.classes[1] ?? "")
            : (theme.classes[7] ?? "");
      context.fillRect(x, box.row * ROW, Math.max(0.5, w - 0.7), ROW - 1);
      if (box.place === over) {
        context.strokeStyle = theme.text;
        context.strokeRect(x + 0.5, box.row * ROW + 0.5, Math.max(1, w - 1), ROW - 2);
      }
      context.fillStyle = theme.ground;
      const text = fit(context, name(box.place), w - 6);
      if (text !== "") context.fillText(text, x + 3, box.row * ROW + ROW / 2);
    }
    context.globalAlpha = 1;
  };
  const told = over >= 0 ? over : from;
  const total = tree.ns[0] ?? 1;
  return (
    <div>
      <p class="controls">
        <label>
          Account{" "}
          <select
            value={tree.account}
            onChange={(event) => {
              setAccount(event.currentTarget.value);
              setRoot("");
            }}
          >
            {flames.trees.map((one) => (
              <option key={one.account} value={one.account}>
                {one.account === "" ? "all" : one.account} ({one.about})
              </option>
            ))}
          </select>
        </label>
        <label>
          Search{" "}
          <input
            type="search"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      </p>
      <figure>
        <figcaption>
          {tree.about}; {flames.coverage}. Width is time; the outermost function is above; green: the
          program, blue: the kernel. Click to zoom, Escape for all.
        </figcaption>
        <Drawing
          name={`flame${at}`}
          label={`flame graph, ${tree.about}; the table below has its largest functions`}
          height={height}
          theme={theme}
          handlers={handlers}
          draw={draw}
        />
        <p class="told">
          {name(told)}: {duration(tree.ns[told] ?? 0)} ({percent((tree.ns[told] ?? 0) / total)}), n ={" "}
          {tree.n[told]} intervals
        </p>
      </figure>
      <Table
        title={`Functions that most time ended in (${tree.top.length})`}
        columns={["function", "time", "part", "intervals"]}
        rows={tree.top.map((row) => [row.name, row.time, row.share, row.n])}
      />
    </div>
  );
}
