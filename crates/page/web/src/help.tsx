// What the keys do.

const KEYS: [string, string][] = [
  ["1, 2, 3 ...", "go to a view"],
  ["t", "dark or light"],
  ["/", "search in the list or the flame graph"],
  ["?", "this help; Escape closes it"],
  ["Tab", "to the next picture; then its own keys work"],
  ["map of seconds: arrows, Enter", "another cell, explain its time; Escape for none"],
  ["timeline: + - 0", "zoom in, out, all of the run"],
  ["timeline: left, right", "earlier, later"],
  ["timeline: up, down", "other threads"],
  ["timeline: n, p", "the next or previous of the longest intervals"],
  ["timeline: w", "choose what is seen as the window to explain, or none"],
  ["flame graph: arrows, Enter", "another frame, zoom to it; Escape for all"],
  ["grid: arrows, Enter", "another cell, open its run"],
];

export function Help({ close }: { close: () => void }) {
  return (
    <div class="help" role="dialog" aria-label="help">
      <h2>Keys</h2>
      <dl>
        {KEYS.map(([key, does]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <p>
        The address has the state of every view: copy it, and whoever opens it with this file sees the
        same. Every number is that of <code>whylag explain --json</code> and <code>show --json</code>.
      </p>
      <button type="button" onClick={close}>
        close
      </button>
    </div>
  );
}
