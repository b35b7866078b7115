"use strict";
// The figures of the page, units in words as hockney prints them, elements made of text only, and the colours.

const data = JSON.parse(document.getElementById("data").textContent);
const NO_TEXT = "–";

// With so many decimals, and a comma before each three digits of a whole number.
function decimal(value, digits) {
  return value.toFixed(digits).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");
}
function significant(value, digits) {
  const rounded = parseFloat(value.toPrecision(digits));
  return decimal(rounded, rounded ? Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded)))) : 0);
}
function scaled(value, units) {
  if (value === 0) return "0";
  const [name, scale] = units.find((unit) => Math.abs(value) >= unit[1] * 0.9995) || units[units.length - 1];
  const short = value / scale;
  const digits = Math.abs(short) >= 99.95 ? 0 : Math.abs(short) >= 9.995 ? 1 : 2;
  return `${decimal(short, digits)} ${name}`;
}
const TIMES = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
const RATES = [["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]];
const SIZES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

function bytesText(count) {
  const unit = SIZES.find(([, scale]) => count >= scale && count % scale === 0);
  return unit ? `${count / unit[1]} ${unit[0]}` : `${count} B`;
}
function percentileText(share) {
  return `${parseFloat((100 * share).toFixed(4))} %`;
}
function plainNumber(value) {
  return Number.isInteger(value) ? String(value) : String(parseFloat(value.toPrecision(3)));
}
const UNIT_TEXT = {
  "ns": (value) => scaled(value, TIMES),
  "bytes/s": (value) => scaled(value, RATES),
  "bytes": bytesText,
  "count": plainNumber,
  "share": (value) => `${(100 * value).toFixed(0)} %`,
  "percentile": percentileText,
  "ratio": (value) => `×${parseFloat(value.toPrecision(3))}`,
  "unix_s": (value) => new Date(value * 1000).toLocaleString("sv-SE").slice(0, 16), // 2026-11-28 03:30, as the axis in local time
  "": plainNumber,
};

// `2.10 us ±3%`, or `8.3 us (2.1–33)‡` of a range: as figure_text of report/words.py on the screen.
function withInterval(value, low, high, text, isRange) {
  if (low === null || high === null || low === undefined || (low === high && !isRange)) return text(value);
  const percent = Math.ceil(100 * Math.max(high - value, value - low) / value);
  if (percent <= 50 && !isRange) return `${text(value)} ±${percent}%`;
  const [number, name = ""] = text(value).split(" "), printed = parseFloat(number.replaceAll(",", ""));
  const ratio = value && printed ? value / printed : 1, distance = (unit) => Math.abs(Math.log(ratio / unit));
  const unit = [1000, 1024].flatMap((base) => [0, 1, 2, 3, 4].map((power) => base ** power))
    .reduce((best, each) => (distance(each) < distance(best) ? each : best));
  const digits = high >= 2 * low ? 2 : 3, mark = isRange ? "‡" : "";
  const [rough, from, to] = [value, low, high].map((end) => significant(end / unit, digits));
  return from === to ? `${text(value)} ${mark}`.trim() : `${`${rough} ${name}`.trim()} (${from}–${to})${mark}`;
}

// An element of its name, attributes, and children that are texts or elements: text is never read as HTML.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// ---- colours and marks: the same for a transport everywhere -----------------------------------------------------------

const COLORS = 10;
const MARKS = ["circle", "rect", "triangle", "diamond"];
const DASHES = ["solid", "dashed", "dotted"];
const placeOf = new Map(data.transports.map((transport, place) => [transport.id, place]));
const probe = element("span", { hidden: "" });
document.body.append(probe);

function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
function look(place) {
  return {
    color: color(`c${place % COLORS}`),
    mark: MARKS[place % MARKS.length],
    dash: DASHES[Math.floor(place / COLORS) % DASHES.length],
  };
}
function theme() {
  return { ink: color("ink"), soft: color("soft"), faint: color("faint"), hair: color("hair"), paper: color("paper"), accent: color("accent"), strong: color("strong"), floor: color("floor") };
}
function isWide() {
  return window.innerWidth > 640;
}

// A short piece of the line with its mark, as the legend shows it.
function swatch(place, kind) {
  const isHollow = kind === "published", isReference = kind === "reference";
  const { color: own, mark, dash: usual } = look(place);
  const ink = isReference ? theme().soft : own;
  const dash = isReference || kind === "model" ? "dashed" : usual;
  const canvas = element("canvas", { class: "swatch", width: 48, height: 28, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = 4;
  pen.setLineDash(dash === "solid" ? [] : dash === "dashed" ? [10, 6] : [4, 5]);
  if (!isHollow) {
    pen.beginPath();
    pen.moveTo(0, 14);
    pen.lineTo(48, 14);
    pen.stroke();
  }
  pen.setLineDash([]);
  if (isReference) return canvas;
  pen.beginPath();
  if (mark === "circle") pen.arc(24, 14, 8, 0, 2 * Math.PI);
  else if (mark === "rect") pen.rect(17, 7, 14, 14);
  else if (mark === "triangle") polygon(pen, [[24, 5], [33, 21], [15, 21]]);
  else polygon(pen, [[24, 4], [33, 14], [24, 24], [15, 14]]);
  if (isHollow) pen.stroke();
  else pen.fill();
  return canvas;
}
function polygon(pen, points) {
  points.forEach(([x, y], number) => (number ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
}
