// Puts the picture together once the data is unpacked.

// stack puts bars that overlap into different rows.
function stack(faults) {
  const ends = [], row = faults.map(f => {
    let r = ends.findIndex(end => end <= f.from);
    if (r < 0) r = ends.length;
    ends[r] = f.to;
    return r;
  });
  return { row, count: Math.max(1, ends.length) };
}

async function main() {
  copyButtons();
  const picture = readPicture(), ops = await readOperations(picture.operations);
  const run = { picture, ops, view: { from: 0, to: 1 }, selected: -1, area: null, head: element("head"), canvas: element("lanes"), colour: colours() };
  run.lanes = byLane(ops, picture.laneOf, picture.lanes.length);
  run.pipelined = picture.lanes.map((_, l) => {
    for (let at = run.lanes.from[l] + 1; at < run.lanes.from[l + 1]; at++) if (run.lanes.start[at] < run.lanes.end[at - 1]) return true;
    return false;
  });
  run.layout = layOut(picture);
  run.laneNames = picture.lanes.map(l => l.role);
  run.writes = writes(ops);
  run.slowest = run.writes.most(0, run.writes.took.length);
  run.faultRows = stack(picture.faults);
  run.leaders = new Map(picture.leaders.map(l => [l.partition, l]));
  const wanted = new Set(picture.proofs.flatMap(p => p.ops)), place = new Map();
  if (wanted.size) for (let i = 0; i < ops.n; i++) if (wanted.has(ops.op[i])) place.set(ops.op[i], i);
  run.proofOps = new Map(picture.proofs.map(p => [p.n, p.ops.map(o => place.get(o)).filter(i => i !== undefined)]));

  const rows = element("rows");
  element("rows-size").style.height = run.layout.height + "px";
  element("loading").remove();
  let asked = false, printing = false;
  function draw() {
    asked = false;
    const began = performance.now(), width = element("timeline").clientWidth, limit = printing ? 12000 : window.innerHeight * 0.72;
    if (!width) return;
    run.gutter = width < 500 ? 62 : 112;
    const height = Math.max(60, Math.min(run.layout.height, limit));
    rows.style.height = height + "px";
    drawHead(run, width);
    drawLanes(run, width, printing ? 0 : rows.scrollTop, height);
    if (run.area) {
      const g = run.canvas.getContext("2d");
      g.fillStyle = run.colour.ink;
      g.globalAlpha = 0.15;
      g.fillRect(Math.min(...run.area), 0, Math.abs(run.area[0] - run.area[1]), height);
      g.globalAlpha = 1;
    }
    element("range").textContent = `${timeText(Math.max(0, run.view.from))} to ${timeText(Math.min(picture.end, run.view.to))}`;
    element("timeline").dataset.drew = (performance.now() - began).toFixed(1); // ms, for tests
  }
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  run.gutter = 112;
  rows.addEventListener("scroll", redraw, { passive: true });
  new ResizeObserver(redraw).observe(element("timeline"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { run.colour = colours(); redraw(); });
  window.addEventListener("beforeprint", () => { printing = true; draw(); });
  window.addEventListener("afterprint", () => { printing = false; draw(); });
  draw();
  control(run, redraw);
  element("timeline").dataset.ready = performance.now().toFixed(0); // ms since the page was asked for
}

main().catch(err => {
  element("timeline").hidden = true;
  const p = element("loading") ?? document.querySelector("#details");
  p.textContent = "The picture cannot be drawn: " + err.message;
  console.error(err);
});
