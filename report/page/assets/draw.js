// Drawing. Lanes are painted pixel by pixel into a buffer, so that the cost depends on the size of the picture and hardly on the number of operations: a pixel
// with many operations takes its depth from the share of time in which something was under way, and what did not go through is always painted.

const AXIS = 20, PHASE = 14, FAULT = 15, STRIP = 56, SHADES = 8, FAULTS = AXIS + PHASE;

function colours() {
  const css = getComputedStyle(document.documentElement);
  const get = name => css.getPropertyValue("--" + name).trim();
  const c = {};
  for (const name of ["page", "card", "ink", "quiet", "line", "append", "fetch", "ends", "copy", "fail", "info", "band", "violated", "held"]) c[name] = get(name);
  c.kinds = [c.append, c.fetch, c.ends, c.ends, c.copy, c.copy, c.append];
  c.shades = c.kinds.map(k => Array.from({ length: SHADES + 1 }, (_, i) => packed(k, c.card, 0.35 + 0.65 * i / SHADES)));
  c.failPixel = packed(c.fail, c.card, 1);
  c.infoPixel = packed(c.info, c.card, 1);
  c.openPixel = packed(c.info, c.card, 0.45);
  c.nodes = ["#2f6fde", "#d97706", "#0f9d6c", "#a855c7", "#c8375a", "#5f7a8a", "#8a6d1f", "#3d8f9f"];
  return c;
}

function rgb(hex) {
  const h = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex;
  return [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16));
}

// packed mixes a colour with what is behind it, as one number in the byte order of ImageData.
function packed(front, behind, share) {
  const f = rgb(front), b = rgb(behind), m = f.map((v, i) => Math.round(v * share + b[i] * (1 - share)));
  return (255 << 24 | m[2] << 16 | m[1] << 8 | m[0]) >>> 0;
}

// paintLane fills good and bad, one number per pixel, with the colours of a lane; 0 is nothing.
function paintLane(run, lane, from, perPixel, good, bad) {
  const { lanes, ops, colour } = run, width = good.length, last = lanes.from[lane + 1], slack = lanes.longest[lane];
  good.fill(0);
  bad.fill(0);
  let i = lanes.from[lane];
  for (let x = 0; x < width;) {
    const a = from + x * perPixel, b = a + perPixel;
    i = above(lanes.end, a, i, last);
    if (i >= last) break;
    let first = i; // with pipelined clients a later one may have begun earlier
    if (lanes.start[i] >= b) {
      if (!run.pipelined[lane]) { x = Math.max(x + 1, Math.floor((lanes.start[i] - from) / perPixel)); continue; }
      while (first < last && lanes.start[first] >= b && lanes.end[first] - slack < b) first++;
      if (first >= last || lanes.start[first] >= b) { x++; continue; }
    }
    const kind = ops.kind[lanes.index[first]];
    const shades = colour.shades[kind] ?? colour.shades[0];
    const till = lanes.end[first];
    if (till >= b + perPixel) { // one operation over several pixels
      const to = Math.min(width, Math.max(x + 1, Math.floor((till - from) / perPixel)));
      good.fill(shades[SHADES], x, to);
      if (lanes.start[first] >= a) good[x] = shades[0]; // where it begins
      x = to;
      continue;
    }
    const j = above(lanes.end, b, i, last);
    let busy = lanes.busy[j] - lanes.busy[i] - Math.max(0, Math.min(a, lanes.end[i]) - lanes.start[i]);
    if (j < last && lanes.start[j] < b) busy += b - lanes.start[j];
    good[x++] = shades[Math.max(0, Math.min(SHADES, Math.round(SHADES * busy / perPixel)))];
    i = j;
  }
  const list = run.lanes.bad[lane];
  for (let k = 0, x = -1; k < list.length; k++) {
    const at = list[k], s = lanes.start[at], e = lanes.end[at];
    if (e < from || s > from + width * perPixel) continue;
    const x0 = Math.max(0, Math.floor((s - from) / perPixel)), x1 = Math.min(width, Math.max(x0 + 1, Math.ceil((e - from) / perPixel)));
    if (x0 === x && x1 === x0 + 1) continue;
    const outcome = ops.outcome[lanes.index[at]];
    const p = outcome === FAIL ? colour.failPixel : outcome === INFO ? colour.infoPixel : colour.openPixel;
    for (let px = x0; px < x1; px++) if (outcome !== FAIL || bad[px] === 0) bad[px] = p;
    x = x0;
  }
}

function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  g.textBaseline = "middle";
  return g;
}

// drawHead draws what stays in place while the lanes scroll: axis, faults, latency.
function drawHead(run, width) {
  const { view, colour: c, gutter } = run, faults = run.faultRows, height = FAULTS + faults.count * FAULT + STRIP + 4;
  const g = sized(run.head, width, height), x = t => gutter + (t - view.from) / (view.to - view.from) * (width - gutter);
  g.clearRect(0, 0, width, height);
  g.fillStyle = c.quiet;
  const step = roundStep((view.to - view.from) / Math.max(2, (width - gutter) / 110));
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    g.fillRect(x(t), AXIS - 5, 1, 5);
    const text = timeText(t, step), w = g.measureText(text).width;
    if (x(t) + w / 2 < width) g.fillText(text, Math.max(gutter, x(t) - w / 2), 8);
  }
  g.fillText("phases", 8, AXIS + PHASE / 2);
  g.fillText("faults", 8, FAULTS + FAULT / 2);
  g.save();
  g.beginPath();
  g.rect(gutter, 0, width - gutter, height);
  g.clip();
  run.picture.phases.forEach((p, i) => {
    const next = run.picture.phases[i + 1], x0 = Math.max(gutter, x(p.at)), room = (next ? x(next.at) : width) - x0;
    g.fillStyle = c.quiet;
    g.fillRect(x(p.at), AXIS, 1, height - AXIS);
    if (g.measureText(p.name).width + 4 < room) g.fillText(p.name, x0 + 4, AXIS + PHASE / 2);
  });
  run.picture.faults.forEach((f, i) => {
    const y = FAULTS + faults.row[i] * FAULT, x0 = x(f.from), w = Math.max(2, x(f.to) - x0);
    if (x0 > width || x0 + w < gutter) return;
    g.globalAlpha = f.effective ? 0.85 : 0.3;
    g.fillStyle = c.band;
    g.fillRect(x0, y + 1, w, FAULT - 3);
    g.globalAlpha = 1;
    g.fillStyle = f.effective ? "#1b1200" : c.ink;
    const at = Math.max(x0, gutter) + 3;
    if (w > 22) { g.save(); g.beginPath(); g.rect(x0, y, w, FAULT); g.clip(); g.fillText(f.name, at, y + FAULT / 2); g.restore(); }
  });
  drawStrip(run, g, FAULTS + faults.count * FAULT + 2, width);
  g.restore();
  g.fillStyle = c.quiet;
  const strip = FAULTS + faults.count * FAULT + 2;
  g.fillText("latency", 8, strip + 8);
  for (const us of [1e3, 1e4, 1e5, 1e6]) {
    const y = strip + STRIP - latencyHeight(run, us);
    if (us > run.slowest * 1.5 || y < strip + 10) continue;
    g.globalAlpha = 0.5;
    g.fillRect(gutter, y, width - gutter, 0.5);
    g.globalAlpha = 1;
    g.textAlign = "right";
    g.fillText(us < 1e6 ? us / 1e3 + " ms" : us / 1e6 + " s", gutter - 6, y);
    g.textAlign = "left";
  }
}

// latencyHeight is logarithmic, from 0.1 ms to the slowest.
const latencyHeight = (run, us) => Math.max(1, (STRIP - 4) * Math.log(Math.max(us, 100) / 100) / Math.log(Math.max(run.slowest, 1e4) / 100));

// drawStrip draws for every pixel the slowest write that ended in it, and one from the middle of a sample.
function drawStrip(run, g, top, width) {
  const { view, writes: w, colour: c, gutter } = run, perPixel = (view.to - view.from) / (width - gutter);
  const sample = [];
  let i = above(w.end, view.from, 0, w.end.length);
  for (let px = gutter; px < width && i < w.end.length; px++) {
    const j = above(w.end, view.from + (px - gutter + 1) * perPixel, i, w.end.length);
    if (j === i) continue;
    g.fillStyle = c.append;
    g.globalAlpha = 0.35;
    const most = latencyHeight(run, w.most(i, j));
    g.fillRect(px, top + STRIP - most, 1, most);
    sample.length = 0;
    for (let k = i, step = Math.max(1, Math.floor((j - i) / 9)); k < j; k += step) sample.push(w.took[k]);
    sample.sort((a, b) => a - b);
    g.globalAlpha = 1;
    const mid = latencyHeight(run, sample[sample.length >> 1]);
    g.fillRect(px, top + STRIP - mid - 1, 1, 2);
    i = j;
  }
  g.globalAlpha = 1;
}

// drawLanes draws the part of the rows that is scrolled into sight.
function drawLanes(run, width, top, height) {
  const { view, colour: c, gutter, layout } = run, canvas = run.canvas, g = sized(canvas, width, height), ratio = window.devicePixelRatio || 1;
  const pw = Math.max(1, Math.round((width - gutter) * ratio)), perPixel = (view.to - view.from) / pw;
  if (!run.buffer || run.buffer.width !== pw || run.buffer.height !== canvas.height) {
    run.buffer = new ImageData(pw, canvas.height);
    run.layer = Object.assign(document.createElement("canvas"), { width: pw, height: canvas.height }).getContext("2d");
  }
  const pixels = new Uint32Array(run.buffer.data.buffer), good = new Uint32Array(pw), bad = new Uint32Array(pw);
  pixels.fill(0);
  const seen = layout.rows.filter(r => r.y + r.height > top && r.y < top + height);
  for (const r of seen) {
    if (r.heading) continue;
    paintLane(run, r.lane, view.from, perPixel, good, bad);
    const y0 = Math.round((r.y - top) * ratio), y1 = Math.round((r.y - top + BAR) * ratio), half = (y0 + y1) >> 1;
    for (let y = Math.max(0, y0); y < y1 && y < canvas.height; y++) pixels.set(good, y * pw);
    for (let px = 0; px < pw; px++) {
      if (bad[px] === 0) continue;
      for (let y = Math.max(0, bad[px] === c.failPixel ? half : y0); y < y1 && y < canvas.height; y++) pixels[y * pw + px] = bad[px];
    }
  }
  run.layer.putImageData(run.buffer, 0, 0);
  g.clearRect(0, 0, width, height);
  const x = t => gutter + (t - view.from) / (view.to - view.from) * (width - gutter);
  g.save();
  g.beginPath();
  g.rect(gutter, 0, width - gutter, height);
  g.clip();
  for (const f of run.picture.faults) {
    g.globalAlpha = f.effective ? 0.16 : 0.06;
    g.fillStyle = c.band;
    g.fillRect(x(f.from), 0, Math.max(1, x(f.to) - x(f.from)), height);
  }
  g.globalAlpha = 1;
  g.drawImage(run.layer.canvas, gutter, 0, width - gutter, height);
  for (const r of seen) if (r.heading) drawLeaders(run, g, x, r, r.y - top, width);
  for (const p of run.picture.proofs) for (const i of run.proofOps.get(p.n)) outline(run, g, x, i, top, c.violated, 2);
  if (run.selected >= 0) outline(run, g, x, run.selected, top, c.ink, 2);
  g.restore();
  for (const r of seen) {
    const y = r.y - top + r.height / 2 - (r.heading ? 0 : 1);
    g.fillStyle = r.heading ? c.ink : c.quiet;
    if (r.heading) g.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    else g.font = "9px system-ui, 'DejaVu Sans', sans-serif";
    g.fillText(r.heading ? (r.partition < 0 ? "clients" : gutter > 80 ? "partition " + r.partition : "p" + r.partition) : run.laneNames[r.lane], r.heading ? 8 : 14, y);
  }
}

// drawLeaders draws who led a partition, as clients saw it, and the gaps in which nothing was acknowledged.
function drawLeaders(run, g, x, row, y, width) {
  const { colour: c, gutter } = run, band = run.leaders.get(row.partition);
  g.font = "10px system-ui, 'DejaVu Sans', sans-serif";
  for (const [from, to, node] of band?.spans ?? []) {
    const x0 = x(from), w = Math.max(1, x(to) - x0);
    if (x0 > width || x0 + w < gutter) continue;
    g.fillStyle = c.nodes[(node - 1 + c.nodes.length) % c.nodes.length];
    g.globalAlpha = 0.8;
    g.fillRect(x0, y + 4, w, HEADING - 7);
    g.globalAlpha = 1;
    if (w > 30) { g.fillStyle = "#fff"; g.fillText("n" + node, Math.max(x0, gutter) + 4, y + 4 + (HEADING - 7) / 2 + 0.5); }
  }
  for (const gap of run.picture.gaps) {
    if (gap.partition !== row.partition) continue;
    const x0 = x(gap.from), w = Math.max(1, x(gap.to) - x0);
    g.fillStyle = c.violated;
    g.fillRect(x0, y + 1, w, 2);
  }
}

function outline(run, g, x, i, top, colour, thick) {
  const row = run.layout.ofLane.get(run.picture.laneOf[run.ops.process[i]]), x0 = x(run.ops.start[i]), w = Math.max(4, x(run.ops.end[i]) - x0);
  g.strokeStyle = colour;
  g.lineWidth = thick;
  g.strokeRect(x0 - 1, row.y - top - 1.5, w + 2, BAR + 3);
}
