// Moving about: pointer, wheel, keys, buttons, and links into the run.

function control(run, redraw) {
  const box = element("timeline"), { head, canvas, picture, ops } = run;
  const total = Math.max(1, picture.end), margin = total * 0.01;
  const width = () => canvas.clientWidth - run.gutter;

  function go(from, to) {
    const span = Math.min(Math.max(to - from, 20), total + 2 * margin), middle = (from + to) / 2;
    from = Math.min(Math.max(middle - span / 2, -margin), total + margin - span);
    run.view = { from, to: from + span };
    redraw();
  }
  const all = () => go(-margin, total + margin);
  const pan = share => { const s = (run.view.to - run.view.from) * share; go(run.view.from + s, run.view.to + s); };
  function zoom(factor, at = (run.view.from + run.view.to) / 2) {
    const span = Math.max(20, (run.view.to - run.view.from) * factor), left = (at - run.view.from) / (run.view.to - run.view.from);
    go(at - left * span, at + (1 - left) * span);
  }
  const timeAt = x => run.view.from + (x - run.gutter) / width() * (run.view.to - run.view.from);

  // reveal scrolls the row of an operation into sight.
  function reveal(i) {
    const row = run.layout.ofLane.get(picture.laneOf[ops.process[i]]), rows = element("rows");
    if (row.y < rows.scrollTop + 20 || row.y > rows.scrollTop + rows.clientHeight - 30) rows.scrollTop = row.y - rows.clientHeight / 2;
  }
  function select(i, link = true) {
    run.selected = i;
    show(run, i >= 0 ? describe(run, i) : []);
    if (i >= 0 && link) history.replaceState(null, "", "#op=" + ops.op[i]);
    redraw();
  }
  // visit goes to an operation so that it can be seen.
  function visit(i) {
    const wide = (run.view.to - run.view.from) / width();
    if (ops.start[i] < run.view.from || ops.end[i] > run.view.to || ops.took[i] < 6 * wide) {
      const span = Math.max(ops.took[i] * 5, 2000);
      go(ops.start[i] + ops.took[i] / 2 - span / 2, ops.start[i] + ops.took[i] / 2 + span / 2);
    }
    reveal(i);
    select(i, false);
  }
  function follow() {
    const op = /^#op=(\d+)$/.exec(location.hash), time = /^#t=([\d.]+)-([\d.]+)$/.exec(location.hash);
    if (op) {
      const i = run.ops.op.indexOf(Number(op[1]));
      if (i < 0) return show(run, [`There is no operation ${op[1]} in this picture.`]);
      visit(i);
    } else if (time) go(Number(time[1]) * 1e6, Number(time[2]) * 1e6);
    else return;
    box.scrollIntoView({ block: "center" });
  }
  // proof shows the operations of the next proof, as near as they all fit.
  let shown = -1;
  function proof(step = 1) {
    const n = picture.proofs.length;
    if (!n) return;
    shown = (shown + step + n) % n;
    const list = run.proofOps.get(picture.proofs[shown].n);
    if (!list.length) return;
    const from = Math.min(...list.map(i => ops.start[i])), to = Math.max(...list.map(i => ops.end[i])), room = (to - from) * 0.15 + 10;
    go(from - room, to + room);
    reveal(list[0]);
    run.selected = list[0];
    show(run, list.flatMap(i => describe(run, i).slice(0, 2)));
    redraw();
  }
  // nearest is the operation of a row at a moment, or within some pixels of it.
  function nearest(row, t) {
    const { lanes } = run, l = row.lane, reach = 4 * (run.view.to - run.view.from) / width();
    const last = lanes.from[l + 1];
    let best = -1, least = reach;
    for (let at = above(lanes.end, t - reach, lanes.from[l], last); at < last && lanes.end[at] - lanes.longest[l] <= t + reach; at++) {
      const distance = Math.max(lanes.start[at] - t, t - lanes.end[at], 0);
      if (distance < least || best < 0 && distance <= least) { best = lanes.index[at]; least = distance; }
      if (least === 0 && !run.pipelined[l]) break;
    }
    return best;
  }
  function pick(x, y) {
    const row = run.layout.rows.find(r => !r.heading && y >= r.y - 1 && y < r.y + r.height);
    if (row && x >= run.gutter) select(nearest(row, timeAt(x)));
  }

  const pointers = new Map();
  let drag = null, pinch = 0;
  const at = e => { const b = canvas.getBoundingClientRect(); return { x: e.clientX - b.left, y: e.clientY - b.top }; };
  for (const target of [head, canvas]) {
    target.addEventListener("pointerdown", e => {
      if (e.button) return;
      pointers.set(e.pointerId, at(e));
      target.setPointerCapture(e.pointerId);
      drag = { ...at(e), view: run.view, moved: false, area: e.shiftKey, target };
      pinch = 0;
    });
    target.addEventListener("pointermove", e => {
      if (!pointers.has(e.pointerId)) return hover(e, target);
      pointers.set(e.pointerId, at(e));
      if (pointers.size === 2) {
        const [a, b] = [...pointers.values()], distance = Math.max(10, Math.abs(a.x - b.x)), middle = timeAt((a.x + b.x) / 2);
        if (pinch) zoom(pinch / distance, middle);
        pinch = distance;
        drag = null;
        return;
      }
      if (!drag) return;
      const p = at(e);
      drag.moved ||= Math.abs(p.x - drag.x) > 3;
      if (!drag.moved) return;
      if (drag.area) { run.area = [drag.x, p.x]; redraw(); return; }
      const shift = (p.x - drag.x) / width() * (drag.view.to - drag.view.from);
      go(drag.view.from - shift, drag.view.to - shift);
    });
    const up = e => {
      const p = at(e), d = drag;
      pointers.delete(e.pointerId);
      drag = null;
      run.area = null;
      if (!d || e.type === "pointercancel") return redraw();
      if (d.moved && d.area) go(timeAt(Math.min(d.x, p.x)), timeAt(Math.max(d.x, p.x)));
      else if (!d.moved && target === canvas) pick(p.x, p.y + element("rows").scrollTop);
    };
    target.addEventListener("pointerup", up);
    target.addEventListener("pointercancel", up);
    target.addEventListener("dblclick", e => zoom(0.4, timeAt(at(e).x)));
  }
  function hover(e, target) {
    if (target === canvas) {
      const p = at(e), row = run.layout.rows.find(r => !r.heading && p.y + element("rows").scrollTop >= r.y - 1 && p.y + element("rows").scrollTop < r.y + r.height);
      const i = row && p.x >= run.gutter ? nearest(row, timeAt(p.x)) : -1;
      canvas.title = i >= 0 ? describe(run, i)[0] : "";
      return;
    }
    const b = head.getBoundingClientRect(), x = e.clientX - b.left, y = e.clientY - b.top, t = timeAt(x);
    const i = picture.faults.findIndex((f, i) => f.from <= t && t <= f.to && y >= FAULTS + run.faultRows.row[i] * FAULT && y < FAULTS + (run.faultRows.row[i] + 1) * FAULT);
    head.title = i >= 0 ? `${picture.faults[i].name}, ${picture.faults[i].role}: ${picture.faults[i].proof}` : "";
  }
  box.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(Math.max(-50, Math.min(50, e.deltaY)) * 0.01), timeAt(at(e).x));
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / width());
    else return;
    e.preventDefault();
  }, { passive: false });

  const actions = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.25), right: () => pan(0.25), all, proof };
  for (const b of document.querySelectorAll("[data-do]")) b.addEventListener("click", () => actions[b.dataset.do]());
  const keys = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowUp: () => element("rows").scrollBy(0, -40), ArrowDown: () => element("rows").scrollBy(0, 40),
    "+": actions.in, "=": actions.in, "-": actions.out, "0": all, Home: () => go(0, run.view.to - run.view.from), End: () => go(total - (run.view.to - run.view.from), total),
    n: () => proof(1), N: () => proof(1), p: () => proof(-1), P: () => proof(-1), Escape: () => select(-1),
    Enter: () => {
      const rows = run.layout.rows.filter(r => !r.heading), selected = run.selected >= 0 ? run.layout.ofLane.get(picture.laneOf[ops.process[run.selected]]) : null;
      const row = selected ?? rows.find(r => r.y >= element("rows").scrollTop) ?? rows[0];
      if (row) select(nearest(row, (run.view.from + run.view.to) / 2));
    },
  };
  box.addEventListener("keydown", e => {
    const act = e.ctrlKey || e.metaKey || e.altKey ? null : keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
  window.addEventListener("hashchange", follow);
  all();
  follow();
}

// copyButtons puts the text of an element on the clipboard; where that is not allowed it is selected instead.
function copyButtons() {
  for (const b of document.querySelectorAll(".copy")) b.addEventListener("click", async () => {
    const from = element(b.dataset.copies);
    try {
      await navigator.clipboard.writeText(from.textContent);
      b.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(from);
      b.textContent = "Selected";
    }
  });
}
