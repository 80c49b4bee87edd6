package nemesis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"ackproof/nemesis/lossy"
	"ackproof/nemesis/seccomp"
	"ackproof/nemesis/vdso"
)

// ScheduleVersion is the version that Load reads and Generate writes.
const ScheduleVersion = 1

// Load reads a schedule from a JSON file. It is strict: unknown fields, wrong types and anything behind the schedule are errors that name
// the file, the line and column, and what was expected. Whether the schedule fits a cluster is Validate's question.
func Load(path string) (Schedule, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Schedule{}, fmt.Errorf("load schedule: %w", err)
	}
	s, at, err := parse(data)
	if err != nil {
		line, column := position(data, at)
		return Schedule{}, fmt.Errorf("load schedule %s:%d:%d: %w", path, line, column, err)
	}
	return s, nil
}

var unknownField = regexp.MustCompile(`^json: unknown field "(.*)"$`)

// parse returns the byte offset that an error is about.
func parse(data []byte) (s Schedule, at int64, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return s, syntax.Offset, fmt.Errorf("expected a schedule as JSON: %w", err)
		case errors.As(err, &kind):
			return s, kind.Offset, fmt.Errorf("%q is a %s, expected a value for %s", kind.Field, kind.Value, kind.Type)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return s, int64(len(data)), errors.New("the file ends early, expected a schedule: an object with version, seed and faults")
		}
		if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
			key := regexp.MustCompile(regexp.QuoteMeta(`"`+m[1]+`"`) + `\s*:`).FindIndex(data)
			if key != nil {
				at = int64(key[0])
			}
			return s, at, fmt.Errorf("unknown field %q, expected one of those of schedule version %d", m[1], ScheduleVersion)
		}
		return s, d.InputOffset(), err
	}
	at = d.InputOffset()
	if rest := bytes.TrimLeft(data[at:], " \t\r\n"); len(rest) > 0 {
		return s, int64(len(data) - len(rest)), errors.New("expected the end of the file behind the schedule")
	}
	if s.Version != ScheduleVersion {
		return s, 0, fmt.Errorf("version is %d, expected %d", s.Version, ScheduleVersion)
	}
	return s, at, nil
}

// position turns a byte offset into line and column, from 1.
func position(data []byte, at int64) (line, column int) {
	head := data[:min(max(at, 0), int64(len(data)))]
	return bytes.Count(head, []byte("\n")) + 1, len(head) - bytes.LastIndexByte(head, '\n')
}

// Validate says whether the schedule can run on a cluster of that many nodes and partitions with that many clients. The error names the
// field by its path ("faults[3].cut.shape") and what was expected there.
func (s Schedule) Validate(nodes, partitions, clients int) error {
	if s.Version != ScheduleVersion {
		return fmt.Errorf("schedule: version is %d, expected %d", s.Version, ScheduleVersion)
	}
	for i, f := range s.Faults {
		if field, want := f.wrong(i, s.Faults, nodes, partitions, clients); field != "" {
			return fmt.Errorf("schedule: faults[%d].%s: expected %s", i, field, want)
		}
	}
	return nil
}

var (
	shapes = []Shape{Isolate, OneWayOut, OneWayIn, Ring, Bridge, DialIn, FollowerWeb, ClientLink}
	roles  = []Role{RoleLeader, RoleFollower, RoleFollowers, RoleSpare, RoleHeir, RoleController, RoleLastInISR, RoleInSync, RoleMinority, RoleAll, RoleOthers, RoleUnhurt, RoleSame, RoleNode, RoleCoordinator, RoleCoordinatorFollowers}
	// narrow are the shapes whose other side may be narrowed down, and to whom.
	narrow  = []Shape{Isolate, OneWayOut, OneWayIn, DialIn}
	against = []Role{RoleLeader, RoleFollowers, RoleController, RoleLastInISR}
)

// Bounds of what a clock can be made to say; several faults may add up to twice as much.
const (
	maxSkewMS  = int64(vdso.MaxOffset / time.Millisecond / 2)
	maxDriftMS = vdso.MaxDriftPPM / 2 / 1000
)

// Bounds of what packets can be made to suffer: below and above, nothing would get through before the time-outs of the kernel.
const (
	maxDelayMS = 10_000
	minRate    = 16 << 10
)

// wrong returns the first field that is wrong and what was expected, or "".
func (f Fault) wrong(self int, all []Fault, nodes, partitions, clients int) (field, want string) {
	partition := func(p int32) bool { return p >= AnyPartition && int(p) < partitions }
	partitionWanted := fmt.Sprintf("a partition from 0 to %d, or -1 for any", partitions-1)
	t := f.Start
	switch {
	case !slices.Contains(AllKinds(), f.Kind):
		return "kind", oneOf(AllKinds())
	case f.ForMS < 0:
		return "for_ms", "0 or more milliseconds"
	case !f.Kind.Down() && f.Kind != DiskError && f.Kind != FlushError && f.ForMS == 0:
		return "for_ms", fmt.Sprintf("more than 0 milliseconds: a %s without length has no effect", f.Kind)
	case f.Loss != "" && (f.Kind != PowerLoss || !slices.Contains(lossy.Losses(), f.Loss)):
		return "loss", "with a power-loss, " + oneOf(lossy.Losses()) + "; with others, nothing"
	case f.Kind == DiskSlow && f.AmountMS <= 0:
		return "amount_ms", "more than 0 milliseconds per flush"
	case f.Kind == ClockDrift && (f.AmountMS == 0 || f.AmountMS < -maxDriftMS || f.AmountMS > maxDriftMS):
		return "amount_ms", fmt.Sprintf("milliseconds that the clock gains per second or, negative, loses, at most %d", maxDriftMS)
	case f.Kind.ofClock() && (f.AmountMS == 0 || f.AmountMS < -maxSkewMS || f.AmountMS > maxSkewMS):
		return "amount_ms", fmt.Sprintf("milliseconds to put the clock forward or, negative, back, at most %d", maxSkewMS)
	case f.Kind == CPUStarve && (f.AmountMS < 1 || f.AmountMS > maxStarveMS):
		return "amount_ms", fmt.Sprintf("milliseconds that the node runs of each %d, 1 to %d", starvePeriod.Milliseconds(), maxStarveMS)
	case f.Kind == PacketDelay && (f.AmountMS < 1 || f.AmountMS > maxDelayMS):
		return "amount_ms", fmt.Sprintf("1 to %d milliseconds per packet", maxDelayMS)
	case f.Kind != DiskSlow && f.Kind != PacketDelay && f.Kind != CPUStarve && !f.Kind.ofClock() && f.AmountMS != 0:
		return "amount_ms", fmt.Sprintf("nothing for a %s", f.Kind)
	case f.Kind.ofShare() && (f.Percent < 1 || f.Percent > 100):
		return "percent", "1 to 100 percent of the packets"
	case !f.Kind.ofShare() && f.Percent != 0:
		return "percent", fmt.Sprintf("nothing for a %s", f.Kind)
	case f.Kind == LinkRate && f.BytesPerSecond < minRate:
		return "bytes_per_second", fmt.Sprintf("%d or more", minRate)
	case f.Kind != LinkRate && f.BytesPerSecond != 0:
		return "bytes_per_second", fmt.Sprintf("nothing for a %s", f.Kind)
	case f.Kind != LinkClog && f.Shuffle:
		return "shuffle", fmt.Sprintf("false for a %s", f.Kind)
	case f.Kind != DiskWipe && f.Whole:
		return "whole", fmt.Sprintf("false for a %s", f.Kind)
	case f.Kind.ofCall() && !slices.Contains(seccomp.Calls(), f.Call):
		return "call", oneOf(seccomp.Calls())
	case f.Kind.ofCall() && f.Nth < 1:
		return "nth", "the number of the call, from 1"
	case !f.Kind.ofCall() && (f.Call != "" || f.Nth != 0):
		return "call", fmt.Sprintf("nothing for a %s, nor nth", f.Kind)
	case f.Kind != ErrorAtCall && f.Error != "":
		return "error", fmt.Sprintf("nothing for a %s", f.Kind)
	case f.Kind == ErrorAtCall && errnos[f.Error] == 0:
		return "error", "one of EIO, ENOSPC, EDQUOT, EINTR"
	case f.StaggerMS < 0:
		return "stagger_ms", "0 or more milliseconds"
	case f.UntilFault != nil && (*f.UntilFault < 0 || *f.UntilFault >= len(all) || *f.UntilFault == self):
		return "until_fault", fmt.Sprintf("the index of another fault, 0 to %d", len(all)-1)
	case t.AfterMS < 0:
		return "start.after_ms", "0 or more milliseconds"
	case t.Fault != nil && (*t.Fault < 0 || *t.Fault >= self):
		return "start.fault", "the index of an earlier fault"
	case t.Healed && t.Fault == nil:
		return "start.healed", "false without start.fault"
	case t.AckedMore < 0:
		return "start.acked_more", "0 or more records"
	case t.ISRAtMost < 0:
		return "start.isr_at_most", "0 (no condition) or more members"
	case t.ISRAtLeast < 0:
		return "start.isr_at_least", "0 (no condition) or more members"
	case t.GiveUpMS < 0:
		return "start.give_up_ms", "0 (5000) or more milliseconds"
	case !partition(t.Partition):
		return "start.partition", partitionWanted
	case t.Partition == AnyPartition && t.Fault == nil && t.aboutPartition():
		return "start.partition", "a partition by number: there is no start.fault to take it from"
	case !slices.Contains(roles, f.Target.Role):
		return "target.role", oneOf(roles)
	case f.Target.Role == RoleSame && t.Fault == nil:
		return "target.role", "another role than same, or start.fault"
	case f.Target.Role != RoleNode && (f.Target.Node != 0 || len(f.Target.Nodes) > 0):
		return "target.node", "nothing, unless the role is node"
	case f.Target.Role == RoleNode && len(f.Target.Nodes) > 0 && f.Target.Node != 0:
		return "target.node", "nothing beside target.nodes"
	case f.Target.Role == RoleNode && len(f.Target.Nodes) == 0 && (f.Target.Node < 1 || f.Target.Node > nodes):
		return "target.node", fmt.Sprintf("a node from 1 to %d", nodes)
	case slices.ContainsFunc(f.Target.Nodes, func(n int) bool { return n < 1 || n > nodes }):
		return "target.nodes", fmt.Sprintf("nodes from 1 to %d", nodes)
	case !partition(f.Target.Partition):
		return "target.partition", partitionWanted
	case f.Target.Aside && f.Target.Partition != AnyPartition:
		return "target.aside", "false, unless target.partition is -1"
	}
	if !f.Kind.onLinks() {
		if f.Cut.Shape != "" || len(f.Cut.Clients) > 0 || f.Cut.Reset || f.Cut.Answers || f.Cut.Against != "" || f.Cut.Plane != "" {
			return "cut", fmt.Sprintf("nothing for a %s", f.Kind)
		}
		return "", ""
	}
	switch {
	case f.Cut.Answers && f.Cut.Shape != ClientLink:
		return "cut.answers", "false with any shape but client-link"
	case !slices.Contains([]Plane{"", PlaneData, PlaneControl}, f.Cut.Plane):
		return "cut.plane", oneOf([]Plane{PlaneData, PlaneControl})
	case f.Kind != Partition && f.Cut.Reset:
		return "cut.reset", fmt.Sprintf("false for a %s", f.Kind)
	case !slices.Contains(shapes, f.Cut.Shape):
		return "cut.shape", oneOf(shapes)
	case f.Cut.Against != "" && !slices.Contains(narrow, f.Cut.Shape):
		return "cut.against", "nothing, unless the shape is " + oneOf(narrow)
	case f.Cut.Against != "" && !slices.Contains(against, f.Cut.Against):
		return "cut.against", oneOf(against)
	case f.Cut.Shape == FollowerWeb && f.Target.Role != RoleFollowers:
		return "target.role", "followers for a follower-web"
	case f.Target.Role == RoleAll && f.Cut.Shape != ClientLink && f.Cut.Shape != Ring:
		return "target.role", "fewer than all nodes: there would be nobody to cut them off from"
	case nodes < 2 && f.Cut.Shape != ClientLink:
		return "cut.shape", "client-link: a single node has no other"
	case nodes < 3 && (f.Cut.Shape == Bridge || f.Cut.Shape == FollowerWeb):
		return "cut.shape", fmt.Sprintf("another shape than %s, which takes 3 nodes", f.Cut.Shape)
	case clients < 1 && f.Cut.Shape == ClientLink:
		return "cut.shape", "another shape than client-link: there are no clients"
	}
	for i, c := range f.Cut.Clients {
		if c < 0 || c > clients {
			return fmt.Sprintf("cut.clients[%d]", i), fmt.Sprintf("a client from 0 to %d", clients)
		}
	}
	return "", ""
}

// aboutPartition: the trigger waits for a state of one partition.
func (t Trigger) aboutPartition() bool {
	return t.AckedMore > 0 || t.LeaderMoved || t.ISRAtMost > 0 || t.ISRAtLeast > 0
}

func oneOf[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, w := range all {
		words[i] = string(w)
	}
	return "one of " + strings.Join(words, ", ")
}
