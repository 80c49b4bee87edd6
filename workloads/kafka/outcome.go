package kafka

// Outcome is what an answer says about one attempt to produce.
type Outcome uint8

// The outcomes.
const (
	Unknown    Outcome = iota // the records may or may not be, or come to be, in the log
	Applied                   // they are in the log
	NotApplied                // this attempt provably never appended them
)

func (o Outcome) String() string {
	return [...]string{"unknown", "applied", "not applied"}[o]
}

// codeMeaning is what one error code says of what became of a request.
type codeMeaning struct {
	code    int16
	name    string
	outcome Outcome
	why     string
}

// produceCodes is the only place that decides what an error code means for a write. A code is NotApplied only if every known broker answers
// it before it appends; whatever is not listed is Unknown, because a new code may mean anything.
var produceCodes = []codeMeaning{
	{0, "NONE", Applied, "the broker acknowledged"},
	{46, "DUPLICATE_SEQUENCE_NUMBER", Applied, "an earlier attempt with this sequence is in the log; its position is not told"},

	{2, "CORRUPT_MESSAGE", NotApplied, "the checksum is tested before the append"},
	{10, "MESSAGE_TOO_LARGE", NotApplied, "the size is tested before the append"},
	{17, "INVALID_TOPIC_EXCEPTION", NotApplied, "there is no such log"},
	{18, "RECORD_LIST_TOO_LARGE", NotApplied, "the size is tested before the append"},
	{19, "NOT_ENOUGH_REPLICAS", NotApplied, "the in-sync set is tested before the append; after it the code is 20"},
	{21, "INVALID_REQUIRED_ACKS", NotApplied, "the request is tested before the append"},
	{29, "TOPIC_AUTHORIZATION_FAILED", NotApplied, "the right is tested before the append"},
	{31, "CLUSTER_AUTHORIZATION_FAILED", NotApplied, "the right is tested before the append"},
	{32, "INVALID_TIMESTAMP", NotApplied, "records are validated before the append"},
	{35, "UNSUPPORTED_VERSION", NotApplied, "the request was not understood"},
	{43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", NotApplied, "the format is tested before the append"},
	{45, "OUT_OF_ORDER_SEQUENCE_NUMBER", NotApplied, "the sequence is tested before the append; earlier attempts are another matter"},
	{47, "INVALID_PRODUCER_EPOCH", NotApplied, "the epoch is tested before the append; earlier attempts are another matter"},
	{59, "UNKNOWN_PRODUCER_ID", NotApplied, "the producer is looked up before the append; earlier attempts are another matter"},
	{76, "UNSUPPORTED_COMPRESSION_TYPE", NotApplied, "records are validated before the append"},
	{87, "INVALID_RECORD", NotApplied, "records are validated before the append"},

	{-1, "UNKNOWN_SERVER_ERROR", Unknown, "anything may have happened"},
	{3, "UNKNOWN_TOPIC_OR_PARTITION", Unknown, "also the answer to a waiting write whose replica was taken away"},
	{6, "NOT_LEADER_OR_FOLLOWER", Unknown, "also the answer to a waiting write whose leader was deposed (KAFKA-13574)"},
	{7, "REQUEST_TIMED_OUT", Unknown, "appended, and not replicated in time"},
	{20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Unknown, "appended, and the in-sync set shrank meanwhile"},
	{56, "KAFKA_STORAGE_ERROR", Unknown, "a part may have been written"},
}

// ProduceOutcome says what the answer to one attempt means.
func ProduceOutcome(code int16) Outcome {
	for _, c := range produceCodes {
		if c.code == code {
			return c.outcome
		}
	}
	return Unknown
}

// CodeName is Kafka's name of a code that produce requests meet, or "" for others.
func CodeName(code int16) string {
	for _, c := range produceCodes {
		if c.code == code {
			return c.name
		}
	}
	return ""
}

// Codes of our own, beside Kafka's.
const (
	// NoAnswer stands for a lost connection or a time-out; it is no code of Kafka's (histories.NoAnswer).
	NoAnswer int16 = -1000
	// NoRoute stands for an operation that was never sent: no leader known, or no connection to it.
	NoRoute int16 = -1001
)
