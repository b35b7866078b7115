"use strict";
// The matrix of all pairs: an image of one pixel a pair, stretched.

// From light to dark, which every eye distinguishes (the shape of cividis).
const RAMP = [[253, 231, 140], [203, 186, 105], [150, 143, 118], [107, 106, 118], [62, 74, 108], [0, 32, 77]];

// Floats of 32 bits, row by row; NaN where a pair has no value.
function decoded(matrix) {
  return new Float32Array(Uint8Array.from(atob(matrix.values), (letter) => letter.charCodeAt(0)).buffer);
}
function shade(share) {
  const place = Math.min(RAMP.length - 1.001, Math.max(0, share * (RAMP.length - 1)));
  const at = Math.floor(place), rest = place - at;
  return RAMP[at].map((part, channel) => Math.round(part + rest * (RAMP[at + 1][channel] - part)));
}

function startMatrix(box, matrix) {
  const values = decoded(matrix);
  const count = matrix.ranks;
  const low = values.reduce((least, value) => (value < least ? value : least), Infinity);
  const high = values.reduce((most, value) => (value > most ? value : most), 0);
  const valueOf = (a, b) => (Number.isNaN(values[a * count + b]) ? null : values[a * count + b]);
  const units = matrix.unit === "ns" ? TIMES : RATES;
  const isRate = units === RATES; // the lowest is the slowest
  // A host with one rank is named instead of it.
  const ownHosts = matrix.hosts.length > 0 && new Set(matrix.hosts).size === count;
  const label = (rank) => (ownHosts ? matrix.hosts[rank] : String(rank));
  const canvas = box.querySelector("canvas");
  const reading = box.querySelector(".reading");
  const left = 44, top = 30, bottom = 52;
  let at = null;

  function image() {
    const small = element("canvas", { width: count, height: count });
    const pen = small.getContext("2d");
    const pixels = pen.createImageData(count, count);
    values.forEach((value, place) => {
      const share = Math.log(value / low) / Math.max(Math.log(high / low), 1e-9);
      if (!Number.isNaN(value)) pixels.data.set([...shade(isRate ? 1 - share : share), 255], 4 * place);
    });
    pen.putImageData(pixels, 0, 0);
    return small;
  }
  const picture = image();

  function draw() {
    const width = Math.min(box.clientWidth, 640);
    const side = width - left - 8;
    const density = Math.max(2, window.devicePixelRatio || 1);
    canvas.width = width * density;
    canvas.height = (side + top + bottom) * density;
    const pen = canvas.getContext("2d");
    pen.scale(density, density);
    const colors = theme();
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture, left, top, side, side);
    pen.strokeStyle = colors.faint;
    pen.strokeRect(left - 0.5, top - 0.5, side + 1, side + 1);
    pen.fillStyle = colors.soft;
    pen.textBaseline = "middle";
    const cell = side / count;
    const step = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((each) => each * cell >= 26) || count;
    for (let rank = 0; rank < count; rank += step) {
      pen.textAlign = "right";
      pen.fillText(label(rank).slice(-6), left - 6, top + (rank + 0.5) * cell);
      pen.textAlign = "center";
      pen.fillText(label(rank).slice(-6), left + (rank + 0.5) * cell, top - 9);
    }
    pen.strokeStyle = colors.strong;
    pen.lineWidth = 2;
    for (const ranks of matrix.outliers) {
      if (ranks.length === 2) for (const [a, b] of [ranks, [ranks[1], ranks[0]]]) frame(pen, cell, a, b, 1, 1);
      if (ranks.length === 1) {
        frame(pen, cell, ranks[0], 0, 1, count);
        frame(pen, cell, 0, ranks[0], count, 1);
      }
    }
    if (at) {
      pen.strokeStyle = colors.ink;
      frame(pen, cell, at[0], at[1], 1, 1);
    }
    legend(pen, side, colors);
  }
  function frame(pen, cell, a, b, rows, columns) {
    pen.strokeRect(left + b * cell, top + a * cell, Math.max(3, columns * cell), Math.max(3, rows * cell));
  }
  function legend(pen, side, colors) {
    const width = Math.min(220, side), y = top + side + 16;
    for (let x = 0; x < width; x++) {
      pen.fillStyle = `rgb(${shade(isRate ? 1 - x / width : x / width).join(",")})`;
      pen.fillRect(left + x, y, 1.5, 10);
    }
    pen.fillStyle = colors.soft;
    pen.textAlign = "left";
    pen.fillText(scaled(low, units), left, y + 22);
    pen.textAlign = "right";
    const text = scaled(high, units);
    pen.fillText(text === scaled(low, units) ? `+${scaled(high - low, units)}` : text, left + width, y + 22);
  }
  function say() {
    if (!at) return;
    const [a, b] = at;
    const name = (rank) => ownHosts ? label(rank) : `${rank}${matrix.hosts.length ? ` (${matrix.hosts[rank]})` : matrix.cpus[rank] >= 0 ? ` (CPU ${matrix.cpus[rank]})` : ""}`;
    const value = valueOf(a, b);
    reading.textContent = `${ownHosts ? "" : "Rank "}${name(a)} to ${name(b)}: ${value === null ? "no value" : scaled(value, units)}`;
    draw();
  }
  canvas.addEventListener("pointermove", (event) => {
    const side = Math.min(box.clientWidth, 640) - left - 8;
    const bounds = canvas.getBoundingClientRect();
    const b = Math.floor((event.clientX - bounds.left - left) / side * count), a = Math.floor((event.clientY - bounds.top - top) / side * count);
    if (a >= 0 && b >= 0 && a < count && b < count) {
      at = [a, b];
      say();
    }
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    at = at ? at.map((rank, axis) => Math.min(count - 1, Math.max(0, rank + step[axis]))) : [0, 0];
    say();
  });
  fillTable(document.querySelector(`[data-matrix-table="${box.dataset.matrix}"]`), matrix.name, () => {
    const rows = [];
    for (let a = 0; a < count; a++) for (let b = 0; b < count; b++) if (valueOf(a, b) !== null) rows.push([label(a), label(b), scaled(valueOf(a, b), units)]);
    return { heads: [ownHosts ? "from host" : "from rank", ownHosts ? "to host" : "to rank", isRate ? "bandwidth" : "half a round trip"], rows };
  });
  matrixDraws.push(draw);
  draw();
}
const matrixDraws = [];
