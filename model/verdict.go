package model

// rank orders verdicts: the larger is the worse. An unknown verdict is the worst of all, so that it cannot pass for a good one.
func (v Verdict) rank() int {
	switch v {
	case Held:
		return 0
	case NotTested:
		return 1
	case Undecided:
		return 2
	case Violated:
		return 3
	}
	return 4
}

// Worst is the worst of the verdicts: violated > undecided > not-tested > held. Of none at all it is NotTested: nothing was shown.
func Worst(verdicts ...Verdict) Verdict {
	if len(verdicts) == 0 {
		return NotTested
	}
	worst := verdicts[0]
	for _, v := range verdicts[1:] {
		if v.rank() > worst.rank() {
			worst = v
		}
	}
	return worst
}

// WorstOf is the worst verdict of the claims.
func WorstOf(claims []ClaimResult) Verdict {
	verdicts := make([]Verdict, len(claims))
	for i, c := range claims {
		verdicts[i] = c.Verdict
	}
	return Worst(verdicts...)
}

// Exit codes of every command that judges. 1 outranks 255 > 3 > 2.
const (
	ExitHeld           = 0
	ExitViolated       = 1
	ExitUndecided      = 2 // undecided or not tested
	ExitInfrastructure = 3
	ExitUsage          = 254 // wrong usage or malformed input
	ExitCrash          = 255 // ackproof is at fault
)

// Exit is the exit code for a verdict.
func (v Verdict) Exit() int {
	switch v {
	case Held:
		return ExitHeld
	case Violated:
		return ExitViolated
	case Undecided, NotTested:
		return ExitUndecided
	}
	return ExitCrash
}
