package fault

// The bugs of consumer groups.
var (
	CommitBeforeReplicated = Bug{"B22", "offset-commit-acked-before-replicated"}
	CommitWithoutFence     = Bug{"B23", "offset-commit-without-generation-fence"}
	ServeBeforeLoaded      = Bug{"B24", "coordinator-serves-before-loaded"}
	DoubleAssignment       = Bug{"B25", "double-assignment"}
)
