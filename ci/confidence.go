package ci

import "math"

// Bound is the upper end of the exact (Clopper–Pearson) one-sided 95 % interval for the probability that a run violates a claim, when n runs put it to the test and
// none violated it: 1 − 0.05^(1/n), about 3/n for large n. 1 if n is 0. It holds for this workload and this mix of faults, and for nothing else.
func Bound(n int) float64 {
	if n <= 0 {
		return 1
	}
	return -math.Expm1(math.Log(0.05) / float64(n))
}
