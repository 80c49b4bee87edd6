package kafka

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of the requests about committed offsets. Members of KIP-848 need the newer ones, since only these carry a member epoch.
const (
	versionOffsetCommit      = 8
	versionOffsetFetch       = 7
	versionOffsetCommitEpoch = 9
	versionOffsetFetchEpoch  = 9
)

// CommittedOffset is what a group has committed in one partition.
type CommittedOffset struct {
	Offset   int64 // the next record to be read; −1: nothing is committed
	Metadata string
}

// CommitAnswer is what a coordinator said to a commit.
type CommitAnswer struct {
	Outcome  Outcome         // of the whole request, where it is the same for all partitions; Unknown if it is unknown of any
	Code     int16           // the first that is not 0; NoAnswer, NoRoute
	Node     int32           // that answered, or did not; 0: none was asked
	Accepted map[int32]bool  // partitions whose commit was accepted; only if the outcome is not Unknown
	Codes    map[int32]int16 // by partition, where there was an answer
}

// Commit commits offsets once. It is never sent again: a broker does not recognise a repetition, so that a late first attempt could undo what came after the second.
func (c *Client) Commit(m Member, byEpoch bool, offsets map[int32]CommittedOffset) CommitAnswer {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation, req.InstanceID = versionOffsetCommit, m.Group, m.ID, m.Generation, m.instance()
	if byEpoch {
		req.Version = versionOffsetCommitEpoch
	}
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = c.cfg.Topic
	for _, p := range sortedKeys(offsets) {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.Metadata = p, offsets[p].Offset, kmsg.StringPtr(offsets[p].Metadata)
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	kresp, node, code := c.askCoordinator(m.Group, req, c.cfg.RequestTimeout+c.cfg.DialTimeout)
	switch code {
	case 0:
	case NoRoute:
		return CommitAnswer{Outcome: NotApplied, Code: code, Node: node}
	default:
		return CommitAnswer{Outcome: Unknown, Code: code, Node: node}
	}
	out := CommitAnswer{Outcome: Applied, Node: node, Accepted: map[int32]bool{}, Codes: map[int32]int16{}}
	for _, t := range kresp.(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			if _, asked := offsets[p.Partition]; t.Topic == c.cfg.Topic && asked {
				out.Codes[p.Partition] = p.ErrorCode
			}
		}
	}
	for _, p := range sortedKeys(offsets) {
		code, answered := out.Codes[p]
		one := CommitOutcome(code)
		if !answered {
			one, code = Unknown, NoAnswer // an answer about something else
		}
		out.Code = cmp.Or(out.Code, c.settle(m.Group, code))
		switch {
		case one == Unknown:
			out.Outcome = Unknown
		case one == Applied:
			out.Accepted[p] = true
		case out.Outcome == Applied:
			out.Outcome = NotApplied
		}
	}
	if out.Outcome == NotApplied && len(out.Accepted) > 0 {
		out.Outcome = Applied // of a part, as Accepted says
	}
	return out
}

// FetchCommitted asks the coordinator for committed offsets. Code is 0 if all of them were told. Members of KIP-848 say by their epoch who asks; others, and outsiders, do not.
func (c *Client) FetchCommitted(m Member, byEpoch bool, partitions []int32) (offsets map[int32]CommittedOffset, node int32, code int16) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = versionOffsetFetch, m.Group
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = c.cfg.Topic, partitions
	req.Topics = append(req.Topics, topic)
	if byEpoch {
		req.Version = versionOffsetFetchEpoch
		one := kmsg.NewOffsetFetchRequestGroup()
		one.Group, one.MemberID, one.MemberEpoch = m.Group, &m.ID, m.Generation
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = c.cfg.Topic, partitions
		one.Topics = append(one.Topics, t)
		req.Groups = append(req.Groups, one)
	}
	kresp, node, code := c.askCoordinator(m.Group, req, c.cfg.RequestTimeout+c.cfg.DialTimeout)
	if code != 0 {
		return nil, node, code
	}
	resp := kresp.(*kmsg.OffsetFetchResponse)
	offsets = map[int32]CommittedOffset{}
	take := func(name string, p kmsg.OffsetFetchResponseTopicPartition) {
		code = cmp.Or(code, p.ErrorCode)
		if name == c.cfg.Topic && slices.Contains(partitions, p.Partition) {
			one := CommittedOffset{Offset: p.Offset}
			if p.Metadata != nil {
				one.Metadata = *p.Metadata
			}
			offsets[p.Partition] = one
		}
	}
	code = resp.ErrorCode
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			take(t.Topic, p)
		}
	}
	for _, g := range resp.Groups {
		if g.Group != m.Group {
			continue
		}
		code = cmp.Or(code, g.ErrorCode)
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				take(t.Topic, kmsg.OffsetFetchResponseTopicPartition(p))
			}
		}
	}
	if code == 0 && len(offsets) < len(partitions) {
		code = NoAnswer
	}
	return offsets, node, c.settle(m.Group, code)
}

// commitCodes is what error codes mean for a commit; see produceCodes. A coordinator appends to its log, so what may be answered after that is Unknown.
var commitCodes = []codeMeaning{
	{0, "NONE", Applied, "the coordinator acknowledged"},

	{3, "UNKNOWN_TOPIC_OR_PARTITION", NotApplied, "the partition is looked up before the append"},
	{12, "OFFSET_METADATA_TOO_LARGE", NotApplied, "the size is tested before the append"},
	{14, "COORDINATOR_LOAD_IN_PROGRESS", NotApplied, "nothing is taken before everything is loaded"},
	{22, "ILLEGAL_GENERATION", NotApplied, "the generation is tested before the append"},
	{24, "INVALID_GROUP_ID", NotApplied, "the request is tested before the append"},
	{25, "UNKNOWN_MEMBER_ID", NotApplied, "the member is looked up before the append"},
	{27, "REBALANCE_IN_PROGRESS", NotApplied, "the state of the group is tested before the append"},
	{28, "INVALID_COMMIT_OFFSET_SIZE", NotApplied, "the size is tested before the append"},
	{29, "TOPIC_AUTHORIZATION_FAILED", NotApplied, "the right is tested before the append"},
	{30, "GROUP_AUTHORIZATION_FAILED", NotApplied, "the right is tested before the append"},
	{35, "UNSUPPORTED_VERSION", NotApplied, "the request was not understood"},
	{69, "GROUP_ID_NOT_FOUND", NotApplied, "the group is looked up before the append"},
	{81, "GROUP_MAX_SIZE_REACHED", NotApplied, "the size is tested before the append"},
	{82, "FENCED_INSTANCE_ID", NotApplied, "the member is looked up before the append"},
	{110, "FENCED_MEMBER_EPOCH", NotApplied, "the epoch is tested before the append"},
	{113, "STALE_MEMBER_EPOCH", NotApplied, "the epoch is tested before the append"},

	{-1, "UNKNOWN_SERVER_ERROR", Unknown, "anything may have happened"},
	{7, "REQUEST_TIMED_OUT", Unknown, "appended, and not replicated in time"},
	{15, "COORDINATOR_NOT_AVAILABLE", Unknown, "also the answer when the append was not replicated in time"},
	{16, "NOT_COORDINATOR", Unknown, "also the answer when the coordinator was deposed while it waited"},
}

// CommitOutcome says what the answer about one partition of a commit means; codes that are not known are Unknown.
func CommitOutcome(code int16) Outcome {
	for _, c := range commitCodes {
		if c.code == code {
			return c.outcome
		}
	}
	return Unknown
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
