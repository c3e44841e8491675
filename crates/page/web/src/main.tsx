// Begins: the data of this file, or of the server, and then the page.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { embedded, isServed, page as fetchPage } from "./data";
import { Home } from "./home";
import { get, set } from "./state";
import { isDark } from "./theme";

const place = document.getElementById("page");

function failed(error: unknown): void {
  if (!place) return;
  render(
    <main>
      <p class="failed">{error instanceof Error ? error.message : String(error)}</p>
      {isServed() && (
        <p>
          <a href="./">all runs</a>
        </p>
      )}
    </main>,
    place,
  );
  document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
}

async function start(): Promise<void> {
  if (!place) return;
  document.documentElement.dataset["theme"] = isDark(get("theme")) ? "dark" : "light";
  const own = await embedded();
  if (own) {
    render(<App page={own} />, place);
  } else if (get("run") !== "") {
    const both = [get("run"), get("with")].filter((run) => run !== "");
    render(<p class="failed dim">Reading run {both.join(" and ")} ...</p>, place);
    const page = await fetchPage(get("run"), get("with"));
    render(<App page={page} />, place);
  } else {
    render(<Home open={() => start().catch(failed)} />, place);
  }
  requestAnimationFrame(() => {
    document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
  });
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href='./']") : null;
  if (!link) return;
  event.preventDefault();
  set({ run: "", with: "" });
  start().catch(failed);
});

start().catch(failed);
