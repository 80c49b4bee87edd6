// One operation in words.

function describe(run, i) {
  const { ops, picture } = run, kind = picture.kinds[ops.kind[i]], outcome = ops.outcome[i], offset = ops.offset[i], count = ops.count[i];
  let what = kind;
  if (kind !== "object") what += " of p" + ops.partition[i];
  if (kind === "append") what = `append of ${count} to p${ops.partition[i]}` + (offset >= 0 ? `, at offset ${offset}` : "");
  else if (kind === "fetch" || kind === "copy-read") what += ` from ${offset}` + (outcome === OK ? (count ? `, ${count} records` : ", nothing") : "");
  else if (offset >= 0) what += `: ${offset}`;
  const words = ["never ended", "ok", "refused: it did not happen", "outcome unknown: it may have happened"];
  const lines = [
    `Operation ${ops.op[i]}: ${what}; ${words[outcome]}.`,
    `Process ${picture.processes[ops.process[i]]}` + (ops.node[i] ? `, node n${ops.node[i]}` : "") + `, ${timeText(ops.start[i])} to ${timeText(ops.end[i])}, ${spanText(ops.took[i])}`
      + (outcome === INVOKE ? ", until the history ends" : `, events ${ops.op[i]} to ${ops.endSeq[i]}`) + ".",
  ];
  if (picture.remarks[ops.remark[i]]) lines.push(picture.remarks[ops.remark[i]]);
  const during = picture.faults.filter(f => f.from <= ops.end[i] && f.to >= ops.start[i]);
  if (during.length) lines.push("During: " + during.map(f => `${f.name} (${f.role})`).join(", ") + ".");
  return lines;
}

function show(run, lines) {
  const box = element("details");
  box.replaceChildren(...lines.map(text => {
    const p = document.createElement("p");
    p.textContent = text;
    return p;
  }));
}
