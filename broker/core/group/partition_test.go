package group

import "testing"

// Java's String.hashCode, by its documentation: s[0]·31^(n−1) + … + s[n−1] over UTF-16.
func TestPartitionOfAGroup(t *testing.T) {
	for id, want := range map[string]int32{"": 0, "a": 97 % 50, "abc": 96354 % 50, "polygenelubricants": 0 /* hashes to −2³¹ */, "😀": 1772899 % 50} {
		if got := PartitionOf(id, 50); got != want {
			t.Errorf("partition of %q: %d, expected %d", id, got, want)
		}
	}
}
