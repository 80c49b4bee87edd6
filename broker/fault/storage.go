package fault

// The bugs of the stores.
var (
	TornTailAccepted = Bug{"B14", "torn-tail-accepted"}
	DamageIsCut      = Bug{"B15", "midlog-corruption-truncates-and-leads"}

	MarkerTooEarly  = Bug{"B51", "clean-marker-written-early"}
	NamesNotFlushed = Bug{"B52", "segment-name-not-flushed"}
	CutInTwoSteps   = Bug{"B53", "truncation-before-checkpoint"}
)
