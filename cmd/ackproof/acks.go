package main

// parseAcks reads the value of --acks, as every command spells it.
func parseAcks(v string) (int, error) {
	acks, ok := map[string]int{"0": 0, "1": 1, "all": -1, "-1": -1}[v]
	if !ok {
		return 0, usagef("--acks is %q, expected 0, 1 or all", v)
	}
	return acks, nil
}
