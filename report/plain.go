package report

import "ackproof/model"

// Plain is a claim in plain words, short enough for a table; an unknown claim is its own name.
func Plain(c model.Claim) string { return plain(c) }

// Evidence lists counts in the order of their names: "acked 9,912, read back 9,912".
func Evidence(counts map[string]int64) string { return evidence(counts) }

// Meaning says what an exit code means.
func Meaning(code int) string { return meaning(code) }
