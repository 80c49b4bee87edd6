// Times in words, and round steps for the axis.

function timeText(us, step) {
  const s = us / 1e6;
  const digits = step === undefined ? 6 : Math.max(0, Math.min(6, 6 - Math.floor(Math.log10(Math.max(1, step)))));
  return s.toFixed(digits) + " s";
}

function spanText(us) {
  if (us < 1000) return us.toFixed(0) + " µs";
  if (us < 1e6) return (us / 1000).toPrecision(3) + " ms";
  return (us / 1e6).toPrecision(3) + " s";
}

// roundStep is the least of 1, 2, 5 × 10ⁿ µs that is not below least.
function roundStep(least) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map(m => m * unit).find(s => s >= least);
}

// first index in [from, to) of a rising array whose value is above v; found by growing steps, because the next is mostly near.
function above(array, v, from, to) {
  let step = 1, low = from, high = from;
  while (high < to && array[high] <= v) { low = high + 1; high += step; step *= 2; }
  high = Math.min(high, to);
  while (low < high) {
    const mid = (low + high) >> 1;
    if (array[mid] <= v) low = mid + 1; else high = mid;
  }
  return low;
}
