"use strict";
// Starts the page: charts, controls, links to evidence, the theme, and the CSV.

function linesOf(view) {
  return view.lines.map((line, number) => ({ ...line, number: number + 1, place: line.color ?? (line.transport === null ? number : placeOf.get(line.transport) ?? number) }));
}

function startChart(target) {
  const id = target.dataset.chart;
  const chart = data.charts[id];
  const hidden = new Set();
  let at = 0;
  const view = () => chart.views[at];
  const ofView = () => ({ kind: chart.kind, x: chart.x, y: view().y });
  const lines = () => linesOf(view()).filter((line) => !hidden.has(line.name));
  show(target, (width) => {
    const option = optionOf(ofView(), lines(), view().names, "", width);
    return isBar(chart) ? { ...option, height: 70 + (isWide() ? 30 : 36) * view().names.length } : option;
  });
  const select = document.querySelector(`[data-views="${id}"]`);
  const details = document.querySelector(`[data-table="${id}"]`);
  const legend = document.querySelector(`[data-legend="${id}"]`);
  function update() {
    redraw(target);
    if (details.open) details.dispatchEvent(new Event("toggle"));
  }
  function fillLegend() {
    const all = linesOf(view());
    if (all.length < 2) return legend.replaceChildren();
    if (chart.kind === "points") {
      legend.classList.add("narrow");
      const named = all.filter((line) => line.points.length === 1);
      return legend.replaceChildren(...named.map((line) => element("span", {}, `${line.number} ${line.name}`)));
    }
    legend.replaceChildren(...all.map((line) => checkbox(labelOf(line), !hidden.has(line.name), (isOn) => {
      if (isOn) hidden.delete(line.name);
      else hidden.add(line.name);
      update();
    }, chart.kind === "lines" ? swatch(line.place, line.kind) : square(chart, line))));
  }
  if (select) {
    select.addEventListener("change", () => {
      at = Number(select.value);
      hidden.clear();
      fillLegend();
      update();
    });
  }
  fillTable(details, target.getAttribute("aria-label").split(".")[0], () => tableOf(chart, view()));
  fillLegend();
}
function square(chart, line) {
  const canvas = element("canvas", { class: "swatch", width: 48, height: 28, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  pen.fillStyle = chart.kind === "intervals" ? color(VERDICT_COLORS[line.name] || "c7") : barColor(line);
  pen.fillRect(8, 2, 26, 24);
  return canvas;
}

// ---- links from findings to what shows them ---------------------------------------------------------------------------

for (const link of document.querySelectorAll("[data-shows]")) {
  link.addEventListener("click", () => {
    const shows = JSON.parse(link.dataset.shows);
    if (!shows.pattern) return;
    const name = groupName(shows);
    if (long.some((curve) => groupName(curve) === name)) chooseGroup(name, shows.transports.map((id) => placeOf.get(id)));
  });
}

// ---- theme, width, print ----------------------------------------------------------------------------------------------

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");
let asked = "";

function isDark() {
  return asked ? asked === "dark" : dark.matches;
}
function repaint() {
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(isDark()));
  if (long.length) curveControls();
  redrawAll();
  matrixDraws.forEach((draw) => draw());
}
function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}
button.addEventListener("click", () => {
  asked = isDark() ? "light" : "dark";
  setTheme(asked);
  repaint();
});
dark.addEventListener("change", repaint);
window.addEventListener("beforeprint", () => {
  setTheme("light");
  for (const target of drawn.keys()) drawNow(target);
  redrawAll();
  matrixDraws.forEach((draw) => draw());
});
window.addEventListener("afterprint", () => {
  setTheme(asked);
  repaint();
});
let width = window.innerWidth;
let waiting = 0;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return; // a phone's bars that come and go
  width = window.innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    foldFilters();
    repaint();
  }, 120);
});

// ---- commands, and the filter on a narrow page ------------------------------------------------------------------------

for (const command of document.querySelectorAll(".fix code, .caption code, .caveat code")) {
  if (!navigator.clipboard) break; // of a page that is not read from a safe place
  const copyButton = element("button", { type: "button", class: "copy", "aria-label": `Copy: ${command.textContent}` }, "Copy");
  copyButton.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.textContent);
    copyButton.textContent = "Copied";
    setTimeout(() => { copyButton.textContent = "Copy"; }, 1500);
  });
  command.after(copyButton);
}
function foldFilters() {
  for (const filter of document.querySelectorAll("details.filter")) filter.open = isWide();
}

// ---- the CSV ----------------------------------------------------------------------------------------------------------

// A cell that begins like a formula would be one in a spreadsheet.
function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value !== "number" ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
function csvText() {
  const rows = [["run", "transport", "pattern", "ranks", "bytes", "state", "time_ns", "time_low_ns", "time_high_ns", "rate_bytes_per_s"]];
  for (const curve of data.curves) {
    curve.x.forEach((size, at) => {
      const rate = curve.payload && size ? rateOf(curve, size, curve.y[at]) : null;
      rows.push([curve.run, data.transports[curve.t].id, curve.pattern, curve.ranks, size, curve.state, curve.y[at], curve.low[at], curve.high[at], rate]);
    });
  }
  return `${rows.map((row) => row.map(csvCell).join(",")).join("\n")}\n`;
}
document.getElementById("csv").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([csvText()], { type: "text/csv" }));
  const link = element("a", { href: address, download: `hockney-run-${data.runs.map((run) => run.id).join("-")}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
});

// ---- go ---------------------------------------------------------------------------------------------------------------

foldFilters();
startCurves();
for (const target of document.querySelectorAll("[data-chart]")) startChart(target);
for (const box of document.querySelectorAll("[data-matrix]")) startMatrix(box, data.matrices[Number(box.dataset.matrix)]);
repaint();
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]));
const sections = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const link = links.get(entry.target.id);
    if (link && entry.isIntersecting) {
      for (const other of links.values()) other.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
    }
  }
}, { rootMargin: "-10% 0px -80% 0px" });
for (const id of links.keys()) sections.observe(document.getElementById(id));
