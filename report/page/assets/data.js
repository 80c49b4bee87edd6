// What the page carries: base64 of a JSON description and of deflated columns of varints, one number per operation and column.

const element = id => document.getElementById(id);

function bytesOf(id) {
  const text = element(id).textContent;
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < out.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// unpack reads as many varints as out has room for.
function unpack(bytes, out) {
  let at = 0;
  for (let i = 0; i < out.length; i++) {
    let b = bytes[at++];
    if (b < 128) { out[i] = b; continue; }
    let v = b & 127, unit = 128;
    do { b = bytes[at++]; v += (b & 127) * unit; unit *= 128; } while (b > 127);
    out[i] = v;
  }
  return out;
}

// readOperations gives every operation as typed arrays, in the order in which they ended. Times are µs.
async function readOperations(n) {
  const column = async (name, Kind) => unpack(await inflate(bytesOf("col-" + name)), new Kind(n));
  const [end, took, endSeq, opSeq, process, kind, partition, offset, count, node, remark] = await Promise.all([
    column("end", Float64Array), column("took", Float64Array), column("endSeq", Float64Array), column("opSeq", Float64Array),
    column("process", Uint32Array), column("kind", Uint8Array), column("partition", Float64Array), column("offset", Float64Array),
    column("count", Float64Array), column("node", Uint32Array), column("remark", Uint16Array),
  ]);
  const start = new Float64Array(n), op = opSeq, outcome = new Uint8Array(n), high = new Map();
  let time = 0, seq = 0;
  for (let i = 0; i < n; i++) {
    time += end[i];
    end[i] = time;
    start[i] = time - took[i];
    if (endSeq[i] > 0) {
      seq += endSeq[i];
      endSeq[i] = seq;
      op[i] = seq - opSeq[i];
    }
    outcome[i] = kind[i] & 3;
    kind[i] >>= 2;
    if (partition[i] > 0x7fffffff) partition[i] -= 0x100000000;
    if (offset[i] === 0) { offset[i] = -1; continue; }
    const z = offset[i] - 1, before = high.get(partition[i]) ?? 0;
    offset[i] = before + (z % 2 ? -(z + 1) / 2 : z / 2);
    high.set(partition[i], Math.max(before, offset[i] + count[i]));
  }
  return { n, start, end, took, op, endSeq, process, kind, outcome, partition, offset, count, node, remark };
}

const readPicture = () => JSON.parse(new TextDecoder().decode(bytesOf("picture")));
