// Stacks of time off the CPU, the outermost function above.
import { useMemo, useState } from "preact/hooks";
import type { Flames, MovedKind, Tree } from "../types";
import { inkOn, type Theme } from "../theme";
import { duration, percent } from "../format";
import { useParam } from "../state";
import { type Canvas, Drawing, fit, type Handlers, type Pointer, Table } from "../ui";

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

/** A tree, and what is looked at in it. */
interface Shown {
  tree: Tree;
  boxes: Box[];
  /** The frame that is as wide as all. */
  root: number;
  /** The frame under the pointer; -1 for none. */
  over: number;
  name: (place: number) => string;
  found: (place: number) => boolean;
  setOver: (place: number) => void;
  zoom: (place: number) => void;
}

export function Flame(props: { flames: Flames; theme: Theme; at: string; kinds?: MovedKind[] }) {
  const { flames, theme, at, kinds = [] } = props;
  const [account, setAccount] = useParam("account");
  const [reverse, setReverse] = useParam("reverse");
  const [root, setRoot] = useParam(`frame${at}`);
  const [search, setSearch] = useParam("search");
  const [over, setOver] = useState(-1);
  const reversed = reverse !== "" && flames.reversed.length > 0;
  const trees = reversed ? flames.reversed : flames.trees;
  const place = Math.max(0, trees.findIndex((one) => one.account === account));
  const tree = trees[place];
  const from = Math.min(Number(root) || 0, (tree?.name.length ?? 1) - 1);
  const boxes = useMemo(() => (tree ? layout(tree, from) : []), [tree, from]);
  if (!tree || tree.name.length === 0) return <p>No stack: nothing slept as long as the threshold, or nothing differs.</p>;
  const name = (place: number) => flames.names[tree.name[place] ?? 0] ?? "";
  const found = (place: number) => search !== "" && name(place).toLowerCase().includes(search.toLowerCase());
  const zoom = (place: number) => setRoot(place === 0 ? "" : String(place));
  const shown: Shown = { tree, boxes, root: from, over, name, found, setOver, zoom };
  const color = (kind: number) =>
    kinds[kind - 4]?.color ?? theme.classes[kind === 1 ? 0 : kind === 2 ? 1 : 7] ?? "";
  const height = (tree.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1) * ROW + 4;
  const top = flames.trees[place]?.top ?? [];
  const told = over >= 0 ? over : from;
  const unit = kinds.length > 0 ? "stacks" : "intervals";
  return (
    <div>
      <p class="controls">
        {trees.length > 1 && (
          <Accounts trees={trees} account={tree.account} choose={(next) => { setAccount(next); setRoot(""); }} />
        )}
        <label>
          Search{" "}
          <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        {flames.reversed.length > 0 && (
          <label>
            <input
              type="checkbox"
              checked={reversed}
              onChange={(event) => { setReverse(event.currentTarget.checked ? "1" : ""); setRoot(""); }}
            />{" "}
            reversed: by where the threads slept
          </label>
        )}
      </p>
      <figure>
        <figcaption>
          {tree.about}
          {flames.coverage && `; ${flames.coverage}`}. {kinds.length > 0 ? "Width is the difference" : "Width is time"}
          ; the {reversed ? "innermost" : "outermost"} function is above
          {kinds.length === 0 && "; green: the program, blue: the kernel"}. Click to zoom, Escape for all.
        </figcaption>
        {kinds.length > 0 && <Kinds kinds={kinds} />}
        <div class="tall">
          <Drawing
            name={`flame${at}`}
            label={`flame graph, ${tree.about}; the table below has its largest functions`}
            height={height}
            theme={theme}
            handlers={handlers(shown)}
            draw={(canvas) => draw(canvas, shown, search !== "", color, theme)}
          />
        </div>
        <p class="told">
          {name(told)}: {duration(tree.ns[told] ?? 0)} ({percent((tree.ns[told] ?? 0) / (tree.ns[0] ?? 1))}), n ={" "}
          {tree.n[told]} {unit}
        </p>
      </figure>
      {top.length > 0 && (
        <Table
          title={`Functions that most time ended in (${top.length})`}
          columns={["function", "time", "part", "intervals"]}
          rows={top.map((row) => [row.name, row.time, row.share, row.n])}
        />
      )}
    </div>
  );
}

function Accounts(props: { trees: Tree[]; account: string; choose: (account: string) => void }) {
  return (
    <label>
      Account{" "}
      <select value={props.account} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.trees.map((one) => (
          <option key={one.account} value={one.account}>
            {one.account === "" ? "all" : one.account} ({one.about})
          </option>
        ))}
      </select>
    </label>
  );
}

function Kinds({ kinds }: { kinds: MovedKind[] }) {
  return (
    <ul class="legend">
      {kinds.map((kind) => (
        <li key={kind.name}>
          <span class="swatch" style={{ background: kind.color }} />
          {kind.name}
        </li>
      ))}
    </ul>
  );
}

function parent(tree: Tree, place: number): number {
  for (let up = place - 1; up >= 0; up--) {
    if ((tree.depth[up] ?? 0) < (tree.depth[place] ?? 0)) return up;
  }
  return 0;
}

function hit(boxes: Box[], p: Pointer): number {
  const row = Math.floor(p.y / ROW);
  const share = p.x / p.width;
  return boxes.find((b) => b.row === row && share >= b.x && share < b.x + b.width)?.place ?? -1;
}

/** The frame beside, or the widest below, for the keys. */
function beside({ tree, boxes, root, over }: Shown, key: string): number | undefined {
  const place = over < 0 ? root : over;
  const box = boxes.find((b) => b.place === place);
  if (!box) return undefined;
  if (key === "ArrowUp") return parent(tree, place);
  if (key === "ArrowDown") {
    const within = (b: Box) => b.row === box.row + 1 && b.x >= box.x - 1e-9 && b.x < box.x + box.width;
    return boxes.filter(within).sort((a, b) => b.width - a.width)[0]?.place;
  }
  const row = boxes.filter((b) => b.row === box.row).sort((a, b) => a.x - b.x);
  return row[row.findIndex((b) => b.place === place) + (key === "ArrowRight" ? 1 : -1)]?.place;
}

function handlers(shown: Shown): Handlers {
  const { boxes, over, setOver, zoom } = shown;
  return {
    move: (p) => setOver(hit(boxes, p)),
    up: (p) => {
      const place = hit(boxes, p);
      if (place >= 0) zoom(place);
    },
    key: (key) => {
      if (key.startsWith("Arrow")) setOver(beside(shown, key) ?? over);
      else if (key === "Enter" && over >= 0) zoom(over);
      else if (key === "Escape" || key === "0") zoom(0);
      else return false;
      return true;
    },
  };
}

function draw(
  { context, width, height }: Canvas,
  { tree, boxes, over, name, found }: Shown,
  searching: boolean,
  color: (kind: number) => string,
  theme: Theme,
): void {
  context.clearRect(0, 0, width, height);
  for (const box of boxes) {
    const [x, w] = [box.x * width, box.width * width];
    if (w < 0.3) continue;
    const kind = tree.kind[box.place] ?? 0;
    const isFound = found(box.place);
    context.globalAlpha = searching && !isFound ? 0.25 : 1;
    context.fillStyle = isFound ? theme.accent : color(kind);
    context.fillRect(x, box.row * ROW, Math.max(0.5, w - 0.7), ROW - 1);
    if (box.place === over) {
      context.strokeStyle = theme.text;
      context.strokeRect(x + 0.5, box.row * ROW + 0.5, Math.max(1, w - 1), ROW - 2);
    }
    context.fillStyle = inkOn(isFound ? theme.accent : color(kind));
    const text = fit(context, name(box.place), w - 6);
    if (text !== "") context.fillText(text, x + 3, box.row * ROW + ROW / 2);
  }
  context.globalAlpha = 1;
}
