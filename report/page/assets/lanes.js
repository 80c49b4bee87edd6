// Operations by lane, and the layout of the rows.

const LANE = 9, BAR = 7, HEADING = 19;

// byLane sorts the operations by lane and keeps the order of their ends within each.
function byLane(ops, laneOf, lanes) {
  const from = new Uint32Array(lanes + 1);
  for (let i = 0; i < ops.n; i++) from[laneOf[ops.process[i]] + 1]++;
  for (let l = 0; l < lanes; l++) from[l + 1] += from[l];
  const next = from.slice(), index = new Uint32Array(ops.n), start = new Float64Array(ops.n), end = new Float64Array(ops.n);
  for (let i = 0; i < ops.n; i++) {
    const at = next[laneOf[ops.process[i]]]++;
    index[at] = i;
    start[at] = ops.start[i];
    end[at] = ops.end[i];
  }
  const busy = new Float64Array(ops.n + 1), longest = new Float64Array(lanes), bad = [];
  for (let l = 0; l < lanes; l++) {
    bad.push([]);
    for (let at = from[l]; at < from[l + 1]; at++) {
      longest[l] = Math.max(longest[l], end[at] - start[at]);
      if (ops.outcome[index[at]] !== OK) bad[l].push(at);
    }
    bad[l] = Uint32Array.from(bad[l]);
  }
  for (let at = 0; at < ops.n; at++) busy[at + 1] = busy[at] + end[at] - start[at];
  return { from, index, start, end, busy, longest, bad };
}

const INVOKE = 0, OK = 1, FAIL = 2, INFO = 3;

// layOut gives every partition a heading and its lanes below it.
function layOut(picture) {
  const rows = [];
  let y = 4, partition;
  picture.lanes.forEach((lane, i) => {
    if (lane.partition !== partition) {
      partition = lane.partition;
      if (rows.length) y += 5;
      rows.push({ heading: true, partition, y, height: HEADING });
      y += HEADING;
    }
    rows.push({ lane: i, partition, y, height: LANE });
    y += LANE;
  });
  return { rows, height: y + 6, ofLane: new Map(rows.filter(r => !r.heading).map(r => [r.lane, r])) };
}

// maxima answers the largest of a range of an array in few steps: level k holds the maxima of 2ᵏ neighbours.
function maxima(values) {
  const levels = [values];
  for (let below = values; below.length > 1;) {
    const level = new Float64Array(Math.ceil(below.length / 2));
    for (let i = 0; i < level.length; i++) level[i] = Math.max(below[2 * i], 2 * i + 1 < below.length ? below[2 * i + 1] : 0);
    levels.push(level);
    below = level;
  }
  return (from, to) => {
    let most = 0;
    for (let k = 0; from < to; k++, from >>= 1, to >>= 1) {
      if (from & 1) most = Math.max(most, levels[k][from++]);
      if (to & 1) most = Math.max(most, levels[k][--to]);
    }
    return most;
  };
}

// writes are the operations of the latency strip: appends, or everything where nothing was appended.
function writes(ops) {
  const pick = [];
  for (const wanted of [0, -1]) {
    for (let i = 0; i < ops.n; i++) if (ops.outcome[i] === OK && (wanted < 0 || ops.kind[i] === wanted)) pick.push(i);
    if (pick.length) break;
  }
  const end = new Float64Array(pick.length), took = new Float64Array(pick.length);
  pick.forEach((i, at) => { end[at] = ops.end[i]; took[at] = ops.took[i]; });
  return { end, took, most: maxima(took) };
}
