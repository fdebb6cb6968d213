// Sliders over the combinations of a study, for notebooks: what anywidget calls (sim/app/verbs/explore.py).
const COLUMNS = [["end_to_end_p50_ms", "median duration", ms], ["end_to_end_max_ms", "longest", ms], ["persisted_bytes", "in-flight data stored", bytes],
  ["throughput_per_second", "records per second", number], ["throughput_change", "change of throughput", share]];
const STYLE = `
.explore { --ink: #1b1f24; --soft: #57606a; --panel: #f3f5f7; --line: #d0d7de; --blue: #0072b2; --pale: #b7d4e8; --red: #b3261e;
  max-width: 880px; padding: 12px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); color: var(--ink); font: 14px/1.4 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .explore { --ink: #e6edf3; --soft: #9da7b3; --panel: #161b22; --line: #3d444d; --blue: #58a6e0; --pale: #2b4d68; --red: #ff8f85; } }
.explore * { box-sizing: border-box; }
.explore label { display: grid; grid-template-columns: minmax(80px, 24%) minmax(60px, 1fr) minmax(74px, 18%); gap: 10px; align-items: center; min-height: 32px; }
.explore label span { overflow-wrap: break-word; min-width: 0; color: var(--soft); }
.explore input { width: 100%; min-width: 0; accent-color: var(--blue); cursor: pointer; }
.explore output { font-weight: 600; font-variant-numeric: tabular-nums; }
.explore dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(145px, 1fr)); gap: 8px 12px; margin: 12px 0; }
.explore dt { color: var(--soft); font-size: 13px; }
.explore dd { margin: 0; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.explore p { margin: 0; min-height: 20px; color: var(--soft); }
.explore p.wrong { color: var(--red); }
.explore ol { display: grid; gap: 3px; margin: 6px 0 0; padding: 0; list-style: none; font-size: 13px; }
.explore li { display: grid; grid-template-columns: minmax(80px, 24%) minmax(60px, 1fr) minmax(74px, 18%); gap: 10px; align-items: center; margin: 0; }
.explore li i { height: 12px; border-radius: 2px; background: var(--pale); }
.explore li.now i { background: var(--blue); }
.explore li.now { font-weight: 600; }
.explore :focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }`;

function ms(value) { return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(2)} s`; }
function bytes(value) { return value < 1e3 ? `${value.toFixed(0)} B` : value < 1e6 ? `${(value / 1e3).toFixed(0)} kB` : `${(value / 1e6).toFixed(1)} MB`; }
function number(value) { return value.toLocaleString("en", { maximumFractionDigits: 0 }); }
function share(value) { return `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)} %`; }

function render({ model, el }) {
  const axes = Object.entries(model.get("axes")), place = axes.map(([, values]) => values.length > 2 ? Math.floor(values.length / 2) : 0);
  const made = (name, parent, text = "") => { const node = document.createElement(name); node.textContent = text; parent.append(node); return node; };
  const root = made("section", el);
  root.className = "explore";
  root.setAttribute("aria-label", "Settings and their results");
  made("style", root, STYLE);
  let active = 0, timer = 0;
  const chosenAt = (axis, at) => axes.map(([, values], i) => values[i === axis ? at : place[i]]).join("\n");
  const sliders = axes.map(([name, values], axis) => {
    const label = made("label", root);
    made("span", label, name.replaceAll(".", ".\u200b")); // lines are broken after dots
    const slider = made("input", label), shown = made("output", label);
    Object.assign(slider, { type: "range", min: 0, max: values.length - 1, step: 1, value: place[axis] });
    slider.setAttribute("aria-label", name);
    slider.addEventListener("input", () => { place[axis] = Number(slider.value); active = axis; draw(); clearTimeout(timer); timer = setTimeout(ask, 150); });
    return { slider, shown, values };
  });
  const answer = made("dl", root), status = made("p", root), bars = made("ol", root);
  status.setAttribute("aria-live", "polite");
  const facts = COLUMNS.map(([column, title, format]) => { const fact = made("div", answer); made("dt", fact, title); return { column, format, value: made("dd", fact, "–") }; });

  function ask() { // the kernel simulates what is not known
    const chosen = chosenAt(-1);
    if (chosen === model.get("chosen") || model.get("points")[chosen]) return;
    model.set("chosen", chosen);
    model.save_changes();
  }

  function draw() {
    const points = model.get("points"), point = points[chosenAt(-1)];
    sliders.forEach(({ slider, shown, values }, axis) => { shown.textContent = values[place[axis]]; slider.setAttribute("aria-valuetext", values[place[axis]]); });
    facts.forEach(({ column, format, value }) => { value.textContent = point && column in point ? format(point[column]) : "–"; });
    status.className = point?.error ? "wrong" : "";
    status.textContent = point?.error ?? (point ? `Median duration by ${axes[active][0]}:` : "Simulating ...");
    const [, values] = axes[active], known = values.map((_, at) => points[chosenAt(active, at)]?.end_to_end_p50_ms);
    const most = Math.max(...known.filter(value => value !== undefined), 1e-9);
    bars.replaceChildren();
    if (point) values.forEach((text, at) => {
      const row = made("li", bars);
      row.className = at === place[active] ? "now" : "";
      made("span", row, text);
      made("i", row).style.width = `${100 * (known[at] ?? 0) / most}%`;
      made("span", row, known[at] === undefined ? "not simulated" : ms(known[at]));
    });
  }

  model.on("change:points", draw);
  draw();
  ask();
  return () => { clearTimeout(timer); model.off("change:points", draw); };
}

export default { render };
