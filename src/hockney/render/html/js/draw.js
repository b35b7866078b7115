"use strict";
// Draws curves, points and bars with ECharts from plain values, and makes the table behind each.

const drawn = new Map(); // by element: how to draw it, and the chart where it was drawn

// ---- axes -------------------------------------------------------------------------------------------------------------

const tail = (share) => -Math.log10(Math.max(1 - share, 1e-9));
const untail = (nines) => 1 - 10 ** -nines;
const TAIL_TICKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

// The place of a value on an axis: ECharts sees linear axes only, so that all scales behave alike and have our ticks.
function placed(axis, value) {
  if (axis.scale === "log10") return Math.log10(value);
  if (axis.scale === "log2") return Math.log2(value);
  if (axis.scale === "tail") return tail(value);
  return axis.scale === "time" ? 1000 * value : value; // ECharts counts milliseconds
}
function unplaced(axis, place) {
  if (axis.scale === "log10") return 10 ** place;
  if (axis.scale === "log2") return 2 ** place;
  if (axis.scale === "tail") return untail(place);
  return place;
}
function isBar(chart) {
  return chart.kind === "bars" || chart.kind === "intervals";
}
function isDrawable(axis, value) {
  return value !== null && value !== undefined && (!axis.scale.startsWith("log") || value > 0);
}

// Ticks of a logarithmic axis: decades, with 2 and 5 between few of them; round values within one decade.
function ticksOf(axis, low, high, most) {
  if (axis.scale === "tail") return TAIL_TICKS.map(tail).filter((tick) => tick <= high + 0.01);
  if (axis.scale === "log2") {
    let step = axis.unit === "bytes" && high - low > 4 ? 2 : 1; // every power of four, or every second one
    while ((high - low) / step > most - 1) step *= 2;
    const ticks = [];
    const first = Math.ceil((low - 1e-9) / step) * step;
    if (axis.unit === "bytes" && first - low > 0.4 * step) ticks.push(low);
    for (let tick = first; tick <= high + 1e-9; tick += step) ticks.push(tick);
    return ticks;
  }
  const ticks = [];
  if (high - low < 0.6) {
    const [first, last] = [10 ** low, 10 ** high];
    const rough = (last - first) / 5, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
    for (let at = Math.ceil(first / step); at * step <= last; at++) ticks.push(Math.log10(at * step));
    return ticks;
  }
  const within = high - low > 2.5 ? [1] : high - low > 1.2 ? [1, 3] : [1, 2, 5];
  const step = high - low > most ? 2 : 1;
  for (let decade = Math.floor(low); decade <= high; decade += step) {
    for (const factor of within) {
      const tick = decade + Math.log10(factor);
      if (tick >= low - 1e-9 && tick <= high + 1e-9) ticks.push(tick);
    }
  }
  return ticks;
}

function axisOption(axis, values, isVertical, hasGrid, names, room) {
  const colors = theme();
  const common = {
    name: axis.title,
    nameLocation: isVertical ? "end" : "middle",
    nameGap: isVertical ? 12 : 30,
    nameTextStyle: { color: colors.soft, align: isVertical ? "left" : "center", fontSize: 12 },
    axisLine: { show: !isVertical, lineStyle: { color: colors.faint } },
    axisTick: { show: false },
    splitLine: { show: hasGrid, lineStyle: { color: colors.hair } },
    axisLabel: { color: colors.soft, fontSize: 12, hideOverlap: true },
  };
  if (axis.scale === "names") {
    const longest = 7.5 * Math.max(...names.map((name) => bothEnds(name).length));
    const label = { ...common.axisLabel, color: colors.ink, formatter: bothEnds, width: Math.min(longest, isWide() ? 330 : 150), overflow: "breakAll", lineHeight: 14, hideOverlap: false };
    return { ...common, type: "category", data: names, inverse: true, splitLine: { show: false }, axisLabel: label };
  }
  if (axis.scale === "linear" || axis.scale === "time") {
    const label = { ...common.axisLabel, formatter: axis.scale === "time" ? undefined : (value) => UNIT_TEXT[axis.unit](value) };
    const isPart = axis.unit === "share" && values.every((value) => value <= 1);
    const limits = axis.scale === "time" ? {} : isPart ? { min: 0, max: 1 } : { min: 0 };
    const type = axis.scale === "time" ? "time" : "value";
    return { ...common, ...limits, type, splitNumber: isWide() ? 6 : 3, axisLabel: label, splitLine: { ...common.splitLine, show: axis.scale === "linear" } };
  }
  const places = values.filter((value) => isDrawable(axis, value)).map((value) => placed(axis, value));
  let low = Math.min(...places), high = Math.max(...places);
  if (axis.scale === "log10") {
    const margin = Math.max(0.05, (high - low) * 0.05);
    [low, high] = [low - margin, high + margin];
  } else if (axis.scale === "tail") {
    [low, high] = [0, Math.max(high, 1)];
  } else if (low === high) {
    [low, high] = [low - 1, high + 1];
  }
  const ticks = ticksOf(axis, low, high, isVertical ? 8 : Math.max(4, Math.floor(room / 56)));
  const text = (place) => UNIT_TEXT[axis.unit](axis.unit === "bytes" || axis.unit === "count" ? Math.round(unplaced(axis, place)) : unplaced(axis, place));
  return {
    ...common,
    type: "value",
    min: low,
    max: high,
    axisLabel: { ...common.axisLabel, customValues: ticks, formatter: (place) => tickText(axis, text(place)) },
    axisTick: { show: false, customValues: ticks },
    splitLine: { ...common.splitLine, customValues: ticks },
  };
}
// Shortens a long name in the middle: the rank or the run is at its end.
function bothEnds(name) {
  const most = isWide() ? 56 : 36;
  return name.length > most ? `${name.slice(0, most - 12)}…${name.slice(-11)}` : name;
}
function tickText(axis, text) {
  return axis.unit === "ns" || axis.unit === "bytes/s" ? text.replace(/\.0+(?= )/, "").replace(/(\.\d*[1-9])0+(?= )/, "$1") : text;
}

// ---- series -----------------------------------------------------------------------------------------------------------

// Bands between the ends of the intervals, one for each stretch of points that have one.
function bands(chart, line, ink) {
  const hasInterval = ([x, , low, high]) => isDrawable(chart.x, x) && isDrawable(chart.y, low) && isDrawable(chart.y, high);
  if (line.points.every(([, , low, high]) => low === high)) return [];
  const stretches = [[]];
  for (const point of line.points) {
    if (hasInterval(point)) stretches[stretches.length - 1].push(point);
    else stretches.push([]);
  }
  return stretches.filter((points) => points.length > 1).map((points) => {
    const edge = (at) => points.map((point) => [placed(chart.x, point[0]), placed(chart.y, point[at])]);
    const outline = [...edge(3), ...edge(2).reverse()];
    return {
      type: "custom",
      silent: true,
      tooltip: { show: false },
      data: [outline[0]],
      clip: true,
      z: 1,
      renderItem: (_, api) => ({ type: "polygon", shape: { points: outline.map((point) => api.coord(point)) }, style: { fill: ink, opacity: 0.16 } }),
    };
  });
}

function hollow(ink) {
  return { color: theme().paper, borderColor: ink, borderWidth: 2, opacity: 1 };
}

// Of a point of a curve that has a label.
function ring(text, ink) {
  return text ? { text, symbol: "circle", symbolSize: 14, itemStyle: hollow(ink) } : {};
}

// A model's line is dashed.
function labelOf(line) {
  return line.name.replace(/, model$/, "");
}

function lineSeries(chart, line, place, edge, width, isAlone) {
  const style = look(place);
  const isPublished = line.kind === "published";
  const isReference = line.kind === "reference";
  const ink = isReference ? theme().soft : style.color;
  const points = line.points
    .map((point, number) => ({ value: [placed(chart.x, point[0]), placed(chart.y, point[1])], point, line, ...ring(line.labels[number], ink) }))
    .filter(({ point }) => isDrawable(chart.x, point[0]) && isDrawable(chart.y, point[1]));
  if (!points.length) return [];
  const thickness = place === 0 && !isAlone && chart.y.scale !== "tail" ? 4.5 : 2; // of the first, so that it is seen below another that takes as long
  return [
    ...bands(chart, line, ink),
    {
      type: "line",
      name: line.name,
      data: points,
      symbol: style.mark,
      symbolSize: isPublished ? 9 : points.length > 40 ? 3 : 6,
      showSymbol: !isReference && chart.y.scale !== "tail" && points.length <= 100,
      showAllSymbol: true,
      lineStyle: { color: ink, width: isReference ? 1.2 : line.kind === "measured" ? thickness : 2, type: isReference || line.kind === "model" ? "dashed" : line.dash || style.dash, opacity: isPublished ? 0 : 1 },
      itemStyle: isPublished ? hollow(ink) : { color: ink },
      emphasis: { focus: "series", lineStyle: { width: 3 } },
      z: isReference ? 1 : 3,
    },
    ...(edge && !isPublished ? [endLabel(chart, line, points[points.length - 1].value, ink, edge, width)] : []),
  ];
}

// The name of a line is at its end or, where lines end at the same size, at the edge; a thin line leads to a moved name.
function endLabel(chart, line, end, ink, edge, width) {
  return {
    type: "scatter",
    silent: true,
    data: [end],
    symbolSize: 1,
    itemStyle: { color: "transparent" },
    label: { show: true, formatter: () => labelOf(line), position: "right", color: ink, opacity: 1, fontSize: 12, lineHeight: 14, width: width - edge - 4, overflow: "truncate", textBorderColor: theme().paper, textBorderWidth: 3 },
    labelLayout: ({ rect }) => ({ x: chart.y.scale === "tail" ? rect.x + 8 : edge, y: rect.y, align: "left", verticalAlign: "middle", moveOverlap: "shiftY" }),
    labelLine: { show: true, length2: 4, minTurnAngle: 90, lineStyle: { color: ink, width: 1, opacity: 0.6 } },
  };
}

// The label of a point goes to the first free place: right, left, above or below; it is left out where none is free, as
// the table has all names. On a narrow page labels are numbers, and the legend has the names. Marks are known from the
// second layout on, which redraw() requests.
const AXIS_WIDTH = 76, TITLE_HEIGHT = 24;

function labelsApart(width) {
  const marks = new Map();
  let taken = [];
  return ({ seriesIndex, labelRect, rect }) => {
    if (marks.has(seriesIndex) && marks.get(seriesIndex).isSeen) {
      for (const mark of marks.values()) mark.isSeen = false;
      taken = [];
    }
    marks.set(seriesIndex, { x: rect.x, y: rect.y, wide: rect.width, high: rect.height, isSeen: true });
    const { width: wide, height: high } = labelRect;
    const middle = rect.y + rect.height / 2, centre = rect.x + rect.width / 2;
    const places = [];
    for (const shift of [0, 0.6, -0.6]) {
      const y = middle - high / 2 + shift * high;
      places.push([rect.x + rect.width + 6, y], [rect.x - wide - 6, y]);
    }
    places.push([centre - wide / 2, rect.y - high - 4], [centre - wide / 2, rect.y + rect.height + 4]);
    const others = [...taken, ...[...marks].filter(([each]) => each !== seriesIndex).map(([, mark]) => mark)];
    const isFree = ([x, y]) => x >= AXIS_WIDTH && y >= TITLE_HEIGHT && x + wide <= width - 4 && others.every((box) => x + wide < box.x || box.x + box.wide < x || y + high < box.y || box.y + box.high < y);
    const place = places.find(isFree);
    if (!place) return { x: -999, y: -999 };
    taken.push({ x: place[0], y: place[1], wide, high });
    return { x: place[0], y: place[1], align: "left", verticalAlign: "top" };
  };
}

function pointSeries(chart, line, place, apart) {
  if (line.kind === "reference") return lineSeries(chart, line, place, 0);
  const isPublished = line.kind === "published";
  const ink = isPublished ? theme().soft : look(place).color;
  return [{
    type: "scatter",
    name: line.name,
    symbol: isPublished ? "circle" : look(place).mark,
    symbolSize: line.points.length > 1 ? 8 : 11,
    itemStyle: isPublished ? hollow(ink) : { color: ink },
    data: line.points
      .map((point, number) => ({ value: [placed(chart.x, point[0]), placed(chart.y, point[1])], point, line, text: line.labels[number] }))
      .filter(({ point }) => isDrawable(chart.x, point[0]) && isDrawable(chart.y, point[1])),
    label: { show: line.points.length === 1, formatter: () => (isWide() ? line.name : String(line.number)), position: "right", color: ink, opacity: 1, fontSize: 12, textBorderColor: theme().paper, textBorderWidth: 3 },
    labelLayout: apart,
  }];
}

// The last line with a part of a bar writes the value at its end.
function barSums(lines) {
  const sums = new Map();
  for (const line of lines) for (const [part, row] of line.points) sums.set(row, { sum: part + (sums.get(row)?.sum || 0), last: line });
  return sums;
}

function barColor(line) {
  return line.transport === null && line.name === "floor" ? theme().floor : look(line.place).color;
}
function barSeries(chart, line, sums) {
  const unit = UNIT_TEXT[chart.x.unit];
  return [{
    type: "bar",
    name: line.name,
    stack: "all",
    barMaxWidth: 22,
    data: line.points.map((point) => ({ value: [point[0], point[1]], point, line })),
    label: { show: true, position: "right", color: theme().ink, fontSize: 12, formatter: ({ data: { point } }) => sums.get(point[1]).last === line ? unit(sums.get(point[1]).sum) : "" },
    itemStyle: { color: barColor(line), borderColor: theme().paper, borderWidth: 0.5 },
    emphasis: { focus: "series" },
  }];
}

const VERDICT_COLORS = { "slower": "c1", "faster": "c0", "inconclusive": "c7", "no difference seen": "c2" };

function intervalSeries(chart, line) {
  const ink = color(VERDICT_COLORS[line.name] || "c7");
  const at = ([x, row, low, high]) => [placed(chart.x, x), row, placed(chart.x, low), placed(chart.x, high)];
  return [
    {
      type: "custom",
      silent: true,
      tooltip: { show: false },
      data: line.points.map(at),
      renderItem: (_, api) => {
        const from = api.coord([api.value(2), api.value(1)]), to = api.coord([api.value(3), api.value(1)]);
        return { type: "line", shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style: { stroke: ink, lineWidth: 2.5, opacity: 0.55 } };
      },
      encode: { x: [0, 2, 3], y: 1 },
    },
    {
      type: "scatter",
      name: line.name,
      symbolSize: 9,
      itemStyle: { color: ink },
      data: line.points.map((point) => ({ value: at(point).slice(0, 2), point, line })),
      markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: theme().soft, width: 1, type: "solid" }, data: [{ xAxis: 0 }] },
    },
  ];
}

// ---- the text under the pointer ---------------------------------------------------------------------------------------

const ROWS_MAX = 14;

function tip(chart, names, note) {
  return (hovered) => {
    const items = (Array.isArray(hovered) ? hovered : [hovered]).filter((item) => item.data && item.data.point);
    const box = element("div", { class: "tip" });
    if (!items.length) return box;
    const first = items[0].data.point;
    const head = isBar(chart) ? names[first[1]] : chart.kind === "points" ? items[0].data.line.name : UNIT_TEXT[chart.x.unit](first[0]);
    box.append(element("div", { class: "head" }, head));
    const unit = UNIT_TEXT[isBar(chart) ? chart.x.unit : chart.y.unit];
    const ordered = isBar(chart) ? items : [...items].sort((a, b) => b.data.point[1] - a.data.point[1]);
    const table = element("table");
    for (const item of ordered.slice(0, ROWS_MAX)) {
      const { point, line } = item.data;
      if (chart.kind === "points") {
        if (item.data.text) table.append(row(item.data.text));
        table.append(row(chart.x.title, UNIT_TEXT[chart.x.unit](point[0])), row(chart.y.title, unit(point[1])));
        continue;
      }
      const value = isBar(chart) ? point[0] : point[1];
      const text = point[2] === null && point[3] === null && (isBar(chart) || line.kind !== "measured" || chart.y.scale === "tail") ? unit(value) : withInterval(value, point[2], point[3], unit, point[4]);
      table.append(row(line.name, text));
    }
    box.append(table);
    if (ordered.length > ROWS_MAX) box.append(element("p", { class: "foot" }, `and ${ordered.length - ROWS_MAX} more`));
    for (const { data: { text, line } } of chart.kind === "lines" ? ordered : []) if (text) box.append(element("p", { class: "foot" }, `${line.name}: ${text}`));
    if (note) box.append(element("p", { class: "foot" }, note));
    return box;
  };
}
function row(...texts) {
  return element("tr", {}, ...texts.map((text) => element("td", {}, text)));
}

// ---- a whole chart ----------------------------------------------------------------------------------------------------

// chart: kind, x, y. lines: with their place in the list of colours. Returns ECharts' option.
function optionOf(chart, lines, names, note, width) {
  const colors = theme();
  const all = lines.filter((line) => !line.isClipped).flatMap((line) => line.points);
  const ends = (axis, at) => all.flatMap((point) => (axis === chart.x) === isBar(chart) ? [point[at], point[2], point[3]] : [point[at]]);
  const apart = labelsApart(width);
  const sums = barSums(chart.kind === "bars" ? lines : []);
  const hasEndLabels = chart.kind === "lines" && isWide() && (lines.length > 1 || lines.some((line) => line.isNamed));
  const longest = Math.max(0, ...lines.filter((line) => line.kind !== "published").map((line) => labelOf(line).length));
  const right = hasEndLabels ? Math.min(270, 30 + 7 * longest) : chart.kind === "bars" ? 64 : 24;
  const makers = { lines: (line) => lineSeries(chart, line, line.place, hasEndLabels ? width - right + 16 : 0, width, lines.length === 1), points: (line) => pointSeries(chart, line, line.place, apart), bars: (line) => barSeries(chart, line, sums), intervals: (line) => intervalSeries(chart, line) };
  return {
    animation: false,
    hasLabels: chart.kind === "points",
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 12, right, top: chart.y.title ? 34 : 14, bottom: chart.x.title ? 44 : 28, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    xAxis: axisOption(chart.x, ends(chart.x, 0), false, true, names, width - AXIS_WIDTH - right),
    yAxis: axisOption(chart.y, ends(chart.y, 1), true, true, names, 0),
    tooltip: {
      trigger: chart.kind === "lines" || chart.kind === "bars" ? "axis" : "item",
      axisPointer: { type: chart.kind === "bars" ? "shadow" : "line", lineStyle: { color: colors.soft, width: 1, type: "solid" }, shadowStyle: { color: colors.hair, opacity: 0.5 }, axis: isBar(chart) ? "y" : "x", label: { show: false } },
      backgroundColor: colors.paper,
      borderColor: colors.faint,
      textStyle: { color: colors.ink },
      confine: true,
      formatter: tip(chart, names, note),
      transitionDuration: 0,
    },
    series: lines.flatMap(makers[chart.kind]),
  };
}

// Draws an element when it is first seen, and again when the theme or the width changes. `make` returns the option.
function show(target, make) {
  drawn.set(target, { make, chart: null, width: 0 });
  seen.observe(target);
  widths.observe(target);
}
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) if (drawn.get(target).width !== target.clientWidth) redraw(target);
});
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: "600px" });

function drawNow(target) {
  const state = drawn.get(target);
  if (state && !state.chart) {
    target.replaceChildren(); // the picture for readers without scripts
    state.chart = echarts.init(target, null, { devicePixelRatio: Math.max(2, window.devicePixelRatio || 1) });
    walkable(target, state);
    redraw(target);
  }
}
function redraw(target) {
  const state = drawn.get(target);
  if (!state || !state.chart) return;
  state.width = target.clientWidth;
  const option = state.make(state.width);
  if (option.height) target.style.height = `${option.height}px`;
  state.chart.resize();
  state.chart.setOption(option.height ? { ...option, height: undefined } : option, { notMerge: true });
  if (option.hasLabels) state.chart.resize();
}
function redrawAll() {
  for (const target of drawn.keys()) redraw(target);
}

// The arrow keys go from point to point of the first curve and show the same as the pointer.
function walkable(target, state) {
  let at = -1;
  target.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const series = state.chart.getOption().series;
    const number = series.findIndex((each) => each.data && each.data.length && each.data[0].point);
    if (event.key === "Escape") state.chart.dispatchAction({ type: "hideTip" });
    if (!step || number < 0) return;
    event.preventDefault();
    at = Math.min(series[number].data.length - 1, Math.max(0, at + step));
    state.chart.dispatchAction({ type: "showTip", seriesIndex: number, dataIndex: at });
  });
}

// ---- the table behind a chart -----------------------------------------------------------------------------------------

const TABLE_ROWS_MAX = 5000;

function fillTable(details, label, make) {
  details.addEventListener("toggle", () => {
    const old = details.querySelector(".scroll");
    if (old) old.remove();
    if (!details.open) return;
    const { heads, rows } = make();
    const body = element("tbody");
    for (const cells of rows.slice(0, TABLE_ROWS_MAX)) {
      body.append(element("tr", {}, ...cells.map((text, number) => (number ? element("td", {}, text) : element("th", { scope: "row" }, text)))));
    }
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))), body);
    const box = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Figures: ${label}` }, table);
    if (rows.length > TABLE_ROWS_MAX) box.append(element("p", {}, `The first ${TABLE_ROWS_MAX} of ${rows.length} rows; the CSV has all.`));
    details.append(box);
  });
}
function tableOf(chart, view) {
  const [x, y] = isBar(chart) ? [null, chart.x] : [chart.x, view.y];
  const lines = chart.kind === "points" ? view.lines.filter((line) => line.kind !== "reference") : view.lines;
  const rows = lines.flatMap((line) => line.points.map((point, number) => {
    const at = isBar(chart) ? view.names[point[1]] : UNIT_TEXT[x.unit](point[0]);
    const value = isBar(chart) ? point[0] : point[1];
    const text = UNIT_TEXT[y.unit];
    const name = line.labels[number] ? `${line.name}, ${line.labels[number]}` : line.name;
    return [name, at, text(value), point[2] === null ? NO_TEXT : text(point[2]), point[3] === null ? NO_TEXT : text(point[3])];
  }));
  const quantity = { "ns": "time", "bytes/s": "rate", "share": "share" };
  const heads = ["curve", isBar(chart) ? "row" : x.title || "date", y.title || quantity[y.unit], "from", "to"];
  return rows.every((cells) => cells[3] === NO_TEXT) ? { heads: heads.slice(0, 3), rows: rows.map((cells) => cells.slice(0, 3)) } : { heads, rows };
}
