"use strict";
// Curves over message size: patterns, transports, machine states and runs are switched on and off.

const long = data.curves.filter((curve) => curve.drawn);
const groupName = ({ pattern, ranks }) => `${pattern}, ${ranks} rank${ranks === 1 ? "" : "s"}`;
const several = data.runs.length > 1;
const copy = long.find((curve) => curve.pattern === "memcpy" && curve.main);
const choice = { group: "", transports: new Set(), states: new Set(), runs: new Set(data.runs.map((run) => run.id)), fits: true, isRate: false };
const runNames = new Map(data.runs.map((run) => [run.id, run.name]));

function inGroup() {
  return long.filter((curve) => groupName(curve) === choice.group);
}
function shownCurves() {
  const curves = inGroup().filter((curve) => choice.transports.has(curve.t) && choice.runs.has(curve.run));
  // The states of the tables are one choice, as each transport may have its own.
  return curves.filter((curve) => (curve.main && choice.states.has("")) || choice.states.has(curve.state));
}
function curveName(curve) {
  const parts = [data.transports[curve.t].name];
  if (several) parts.push(runNames.get(curve.run));
  if (!curve.main) parts.push(curve.state);
  return parts.join(", ");
}

// Solid is the first run in the state of the tables.
function dashOf(curve) {
  const run = data.runs.findIndex((each) => each.id === curve.run);
  return run || !curve.main ? DASHES[1 + (run + (curve.main ? 1 : 0)) % 2] : "";
}
// Each run has its own colours where there are enough.
function placeIn(curve) {
  const count = data.transports.length, run = data.runs.findIndex((each) => each.id === curve.run);
  return curve.t + (count * data.runs.length <= COLORS ? run * count : 0);
}

const SIZE_AXIS = { title: "message size", unit: "bytes", scale: "log2" };
const TIME_CHART = { kind: "lines", x: SIZE_AXIS, y: { title: "", unit: "ns", scale: "log10" } };
const RATE_CHART = { kind: "lines", x: SIZE_AXIS, y: { title: "", unit: "bytes/s", scale: "log10" } };

// Of the messages that were not lost.
function rateOf(curve, size, time) {
  return time ? 1e9 * curve.payload * (curve.arrived[size] ?? 1) * size / time : null;
}
function lineOf(curve, isRate) {
  const points = curve.x.map((size, at) => {
    const [time, low, high] = [curve.y[at], curve.low[at], curve.high[at]];
    const ends = isRate ? [time, high, low].map((each) => rateOf(curve, size, each)) : [time, low, high];
    return [size, ...ends, curve.ranges.includes(size)];
  });
  return { name: curveName(curve), kind: "measured", labels: [], place: placeIn(curve), dash: dashOf(curve), points: points.filter(([size]) => size > 0 || !isRate), curve };
}

// Fitted segments as thin dark lines over the curve, protocol switches as marks at the first size beyond.
function extras(chart, lines, isRate) {
  if (!choice.fits) return [];
  const colors = theme();
  const made = [];
  const belongs = (fit, curve) => curve.main && ["run", "t", "pattern", "ranks"].every((key) => fit[key] === curve[key]);
  for (const { curve } of lines) {
    for (const segment of data.segments.filter((fit) => belongs(fit, curve))) {
      const sizes = curve.x.filter((size) => size >= Math.max(1, segment.from) && size <= segment.to);
      const fitted = (size) => segment.t0 + 1e9 * size / segment.r;
      const points = sizes.map((size) => [placed(chart.x, size), placed(chart.y, isRate ? rateOf(curve, size, fitted(size)) : fitted(size))]);
      if (points.length > 1 && points.every(([, y]) => Number.isFinite(y))) {
        made.push({ type: "line", data: points, symbol: "none", silent: true, tooltip: { show: false }, lineStyle: { color: colors.ink, width: 1, type: [3, 3], opacity: 0.75 }, z: 4 });
      }
    }
    for (const change of data.switches.filter((fit) => belongs(fit, curve))) {
      const at = curve.x.indexOf(change.above);
      if (at < 0) continue;
      const y = isRate ? rateOf(curve, change.above, curve.y[at]) : curve.y[at];
      made.push({
        type: "scatter", data: [[placed(chart.x, change.above), placed(chart.y, y)]], symbol: "circle", symbolSize: 15, silent: true, tooltip: { show: false },
        itemStyle: { color: "transparent", borderColor: look(placeIn(curve)).color, borderWidth: 2, borderType: change.answer === "suspected" ? [3, 2] : "solid" }, z: 5,
      });
    }
  }
  return made;
}

// The floor, and memcpy at the sizes of the curves.
function references(lines, isRate) {
  const sizes = lines.flatMap(({ points }) => points.map(([size]) => size)).filter((size) => size > 0);
  if (!sizes.length) return [];
  const ends = [Math.min(...sizes), Math.max(...sizes)];
  const floors = [...new Set(lines.map(({ curve }) => curve.floor).filter(Boolean))];
  const made = [];
  if (!isRate && floors.length === 1) made.push({ name: "floor", points: ends.map((size) => [size, floors[0], null, null]) });
  if (copy && groupName(copy) !== choice.group) {
    const points = lineOf(copy, isRate).points.filter(([size]) => size >= ends[0] && size <= ends[1]);
    made.push({ name: "memcpy", points, isClipped: !isRate }); // of short messages it is far below all times
  }
  return made.filter(({ points }) => points.length).map((line) => ({ ...line, kind: "reference", labels: [], place: 0, isNamed: true }));
}

function legendOfReferences() {
  const meanings = { floor: "the floor", memcpy: `memcpy, a copy of that size within one rank${several && copy ? ` (${runNames.get(copy.run)})` : ""}` };
  const texts = references(shownCurves().map((curve) => lineOf(curve, false)), false).map(({ name }) => meanings[name]);
  return texts.length ? ` Dashed in grey: ${texts.join("; ")}.` : "";
}
// Which curves have one, and where: a label at the ring would lie on a curve.
function switchesText() {
  const shown = shownCurves().filter((curve) => curve.main);
  const texts = data.switches.filter(() => choice.fits).flatMap((fit) => shown
    .filter((curve) => ["run", "t", "pattern", "ranks"].every((key) => fit[key] === curve[key]))
    .map((curve) => `${curveName(curve)} ${bytesText(fit.below)} to ${bytesText(fit.above)}${fit.answer === "suspected" ? " (suspected)" : ""}`));
  return texts.length ? ` Rings are protocol switches: ${texts.join("; ")}.` : "";
}
function definition() {
  const pattern = choice.group.split(/[ ,]/)[0];
  return data.definitions[pattern] || "";
}
function curvesOption(isRate, width) {
  const curves = shownCurves().filter((curve) => !isRate || curve.payload);
  const chart = isRate ? RATE_CHART : TIME_CHART;
  const lines = curves.map((curve) => lineOf(curve, isRate));
  if (!lines.some((line) => line.points.some(([size]) => size > 0))) return emptyOption(isRate && shownCurves().length ? "This pattern has no rate." : "Nothing is switched on.");
  const option = optionOf(chart, [...lines, ...references(lines, isRate)], [], definition(), width);
  option.series.push(...extras(chart, lines, isRate));
  const strips = hasStrips() && !isRate ? data.strips : [];
  option.grid.bottom += STRIP_HEIGHT * strips.length;
  option.series.push(...strips.flatMap((strip, row) => stripSeries(chart, strip, row, width)));
  return option;
}

// ---- the fastest at each size, under the axis -------------------------------------------------------------------------

const STRIP_HEIGHT = 24, STRIP_TOP = 46; // below the plot: after ticks and title of the axis

function hasStrips() {
  return choice.group === "pingpong, 2 ranks" && !several && data.strips.length > 0;
}
function stripSeries(chart, { name, spans }, row, width) {
  const colors = theme();
  const common = { type: "custom", silent: true, clip: false, tooltip: { show: false }, z: 2 };
  const place = ({ x, y, width: wide, height }) => ({ left: x, right: x + wide, top: y + height + STRIP_TOP + STRIP_HEIGHT * row });
  const text = (words, x, y, fill, more) => ({ type: "text", style: { text: words, x, y, verticalAlign: "middle", fill, fontSize: 12, ...more } });
  return [{
    ...common,
    data: spans.map(([first]) => [placed(chart.x, first), 0]),
    renderItem: ({ coordSys, dataIndex }, api) => {
      const [first, last, best, words] = spans[dataIndex], { left, right, top } = place(coordSys);
      const at = (size) => Math.min(right, Math.max(left, api.coord([placed(chart.x, size), 0])[0]));
      const from = at(first) + 1, to = at(last) - 1, high = (STRIP_HEIGHT - 4) / best.length;
      const boxes = best.map((each, number) => ({ type: "rect", shape: { x: from, y: top + number * high, width: to - from, height: high }, style: { fill: look(each).color, opacity: 0.28 } }));
      const label = 6.6 * words.length < to - from - 8 ? [text(words, (from + to) / 2, top + 10, colors.ink, { align: "center" })] : [];
      return { type: "group", children: [...boxes, ...label] };
    },
  }, {
    ...common,
    data: isWide() ? [[placed(chart.x, spans[0][0]), 0]] : [],
    renderItem: ({ coordSys }) => text(name, place(coordSys).right + 16, place(coordSys).top + 10, colors.soft, { width: width - place(coordSys).right - 18, overflow: "truncate" }),
  }];
}
function emptyOption(text) {
  return { xAxis: { show: false }, yAxis: { show: false }, series: [], graphic: [], title: [], aria: {}, tooltip: { show: false }, textStyle: {}, empty: text };
}

function curvesTable() {
  const curves = copy && groupName(copy) !== choice.group ? [...shownCurves(), copy] : shownCurves();
  const rows = curves.flatMap((curve) => curve.x.map((size, at) => {
    const isRange = curve.ranges.includes(size), [time, low, high] = [curve.y[at], curve.low[at], curve.high[at]];
    const rates = [time, high, low].map((each) => rateOf(curve, size, each));
    const rate = curve.payload && size ? withInterval(...rates, UNIT_TEXT["bytes/s"], isRange) : NO_TEXT;
    return [curve === copy ? "memcpy" : curveName(curve), curve.state, bytesText(size), withInterval(time, low, high, UNIT_TEXT.ns, isRange), rate];
  }));
  return { heads: ["curve", "machine state", "size", "time", "rate"], rows };
}

// ---- controls ---------------------------------------------------------------------------------------------------------

function checkbox(text, isOn, change, mark) {
  const box = element("input", { type: "checkbox" });
  box.checked = isOn;
  box.addEventListener("change", () => change(box.checked));
  return element("label", {}, box, ...(mark ? [mark] : []), text);
}
function toggled(set, value, update) {
  return (isOn) => {
    if (isOn) set.add(value);
    else set.delete(value);
    update();
  };
}

function curveControls() {
  const box = document.getElementById("curve-controls");
  const curves = inGroup();
  const groups = [...new Set(long.map(groupName))];
  const select = element("select", {}, ...groups.map((name) => element("option", { value: name }, name)));
  select.value = choice.group;
  select.addEventListener("change", () => chooseGroup(select.value));
  const parts = [element("label", {}, "Pattern ", select)];
  const transports = [...new Set(curves.map((curve) => curve.t))];
  parts.push(element("fieldset", {}, element("legend", {}, "Transports"), ...transports.map((place) =>
    checkbox(data.transports[place].name, choice.transports.has(place), toggled(choice.transports, place, updateCurves), swatch(place)))));
  const states = [...new Set(curves.filter((curve) => !curve.main).map((curve) => curve.state))];
  if (states.length) {
    parts.push(element("fieldset", {}, element("legend", {}, "Machine states"),
      checkbox("as in the tables", choice.states.has(""), toggled(choice.states, "", updateCurves)),
      ...states.map((state) => checkbox(state, choice.states.has(state), toggled(choice.states, state, updateCurves)))));
  }
  if (several) {
    parts.push(element("fieldset", {}, element("legend", {}, "Runs"), ...data.runs.map((run) =>
      checkbox(run.name, choice.runs.has(run.id), toggled(choice.runs, run.id, updateCurves)))));
  }
  if (data.segments.length) {
    parts.push(checkbox("fitted segments and switches", choice.fits, (isOn) => {
      choice.fits = isOn;
      updateCurves();
    }));
  }
  box.replaceChildren(...parts);
}
function chooseGroup(name, transports) {
  choice.group = name;
  const places = [...new Set(inGroup().map((curve) => curve.t))];
  choice.transports = new Set(transports && transports.length ? places.filter((place) => transports.includes(place)) : places);
  choice.states = new Set([""]);
  curveControls();
  updateCurves();
}
function updateCurves() {
  redraw(document.getElementById("curve-chart"));
  document.getElementById("curve-legend").replaceChildren(...shownCurves().map((curve) => element("span", {}, swatch(placeIn(curve)), curveName(curve))));
  const details = document.getElementById("curve-table");
  if (details.open) details.dispatchEvent(new Event("toggle"));
  const strips = hasStrips() && !choice.isRate ? " Under the axis: the fastest of each class; two colours where intervals overlap." : "";
  document.getElementById("curve-title").textContent = `${choice.isRate ? "Bandwidth" : "Time"} over message size: ${choice.group}`;
  document.getElementById("curve-note").textContent = `${definition()}${strips} Bands are 95\u00a0% confidence intervals or, where one machine state has too few measurements, ranges (‡); dotted lines are fitted segments.${switchesText()}${legendOfReferences()} A size of 0\u00a0B is in the table only.`;
}
function quantityToggle() {
  const buttons = ["Time", "Bandwidth"].map((text, number) => {
    const button = element("button", { type: "button", "aria-pressed": String(number === 0) }, text);
    button.addEventListener("click", () => {
      choice.isRate = number === 1;
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
      updateCurves();
    });
    return button;
  });
  document.getElementById("curve-toggle").append(...buttons);
}
function startCurves() {
  if (!long.length) return;
  const first = long.find((curve) => curve.pattern === "pingpong" && curve.ranks === 2) || long[0];
  choice.group = groupName(first);
  quantityToggle();
  show(document.getElementById("curve-chart"), (width) => curvesOption(choice.isRate, width));
  chooseGroup(choice.group);
  fillTable(document.getElementById("curve-table"), "curves over message size", curvesTable);
}
