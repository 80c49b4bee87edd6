package controller

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata answer now into them")

// The files in testdata are conversations with the metadata log: a command, a line of dashes, the answer and what changed. Every command is one entry.
// "# reset" aside, each file is one history from its beginning. Commands: see lab.run.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	var out strings.Builder
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		at := i + 1
		var want []string
		if i++; i < len(lines) && lines[i] == "----" {
			for i++; i < len(lines) && lines[i] != ""; i++ {
				want = append(want, lines[i])
			}
		}
		got := l.run(line)
		fmt.Fprintf(&out, "%s\n----\n", line)
		if got != "" {
			out.WriteString(got + "\n")
		}
		if i < len(lines) {
			out.WriteString("\n")
		}
		if w := strings.Join(want, "\n"); !*rewrite && got != w {
			t.Errorf("%s:%d: %s\n got:\n%s\nwant:\n%s", file, at, line, got, w)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lab is a metadata log on its own, without raft.
type lab struct {
	t            *testing.T
	image        *Image
	flags        flags
	incarnations map[int32]byte
	quick        bool // leave out the checks that take long
}

func newLab(t *testing.T) *lab {
	return &lab{t: t, image: emptyImage(), incarnations: map[int32]byte{}}
}

// do applies one request as the log would, and checks what every entry must keep.
func (l *lab) do(q kmsg.Request) kmsg.Response { return l.doAs(q, false) }

func (l *lab) doAs(q kmsg.Request, internal bool) kmsg.Response {
	l.t.Helper()
	old := l.image
	e := newEdit(old, old.Index+1, "lab", l.flags)
	if l.quick {
		resp := e.apply(q, internal)
		l.image = e.image
		return resp
	}
	before := l.encode(old)
	en, err := decodeEntry(entry{number: 7, flags: l.flags, request: q}.encode())
	if err != nil {
		l.t.Fatalf("%T: %v", q, err)
	}
	resp := e.apply(en.request, internal)
	l.image = e.image
	if err := l.image.Check(); err != nil {
		l.t.Fatal(err)
	}
	if after := l.encode(old); before != after {
		l.t.Fatalf("%T changed the image that it was applied to:\n%s\n%s", q, before, after)
	}
	now, same := l.encode(l.image), l.encode(old.at(l.image.Index))
	if e.changed != (now != same) {
		l.t.Fatalf("%T: changed is %v:\n%s\n%s", q, e.changed, same, now)
	}
	back, err := decodeImage([]byte(now))
	if err != nil {
		l.t.Fatalf("the image does not come back: %v\n%s", err, now)
	}
	if again := l.encode(back); again != now {
		l.t.Fatalf("the image comes back as another one:\n%s\n%s", now, again)
	}
	return resp
}

func (l *lab) encode(im *Image) string {
	l.t.Helper()
	data, err := encodeImage(im)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(data)
}

func code(c int16) string {
	if c == 0 {
		return "ok"
	}
	return kerr.ErrorForCode(c).(*kerr.Error).Message
}

func because(c int16, why *string) string {
	if why == nil {
		return code(c)
	}
	return code(c) + ": " + *why
}

// changes lists the partitions that differ from the image before.
func (l *lab) changes(before *Image) []string {
	var out []string
	for _, name := range sortedKeys(l.image.Topics) {
		for i, p := range l.image.Topics[name].Partitions {
			if b := before.Topics[name]; b == nil || i >= len(b.Partitions) || b.Partitions[i] != p {
				line := fmt.Sprintf("  %s-%d: leader %d/%d, change %d, replicas %v, isr %v, elr %v, last %d",
					name, i, p.Leader, p.LeaderEpoch, p.PartitionEpoch, p.Replicas, p.ISR, p.ELR, p.LastKnownLeader)
				if len(p.Lost) > 0 {
					line += fmt.Sprintf(", lost %v", p.Lost)
				}
				out = append(out, line)
			}
		}
	}
	return out
}

// run carries out one command. Words without "=" are arguments, those with it are options.
func (l *lab) run(line string) string {
	var args []string
	opts := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			opts[k] = v
		} else {
			args = append(args, w)
		}
	}
	before := l.image
	out := l.command(args, opts)
	return strings.Join(append(out, l.changes(before)...), "\n")
}

func (l *lab) num(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		l.t.Fatalf("script: %v", err)
	}
	return n
}

func (l *lab) list(s string) []int32 {
	out := []int32{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
		out = append(out, int32(l.num(w)))
	}
	return out
}

// take removes an option and returns it, or what holds without it.
func take(opts map[string]string, key, otherwise string) string {
	if v, ok := opts[key]; ok {
		delete(opts, key)
		return v
	}
	return otherwise
}

func (l *lab) command(args []string, opts map[string]string) []string {
	has := func(word string) bool {
		for _, a := range args[1:] {
			if a == word {
				return true
			}
		}
		return false
	}
	var out []string
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	switch args[0] {
	case "single-copy": // the controller accepts it from here on
		l.flags |= singleCopy
	case "plant": // B05 is on from here on
		l.flags |= electAnyReplica
	case "defaults": // what the controller in office is configured to
		res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeBroker}
		for _, k := range sortedKeys(opts) {
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: k, Value: kmsg.StringPtr(opts[k])})
		}
		q := latest(kmsg.NewPtrIncrementalAlterConfigsRequest())
		q.Resources = append(q.Resources, res)
		l.doAs(q, true)
	case "up": // register and unfence, one broker after the other
		for _, a := range args[1:] {
			l.command([]string{"register", a}, opts)
			l.command([]string{"heartbeat", a}, opts)
		}
	case "register":
		id := int32(l.num(args[1]))
		if !has("again") {
			l.incarnations[id]++
		}
		q := latest(kmsg.NewPtrBrokerRegistrationRequest())
		q.BrokerID, q.IncarnationID[0], q.PreviousBrokerEpoch = id, l.incarnations[id], -1
		if has("clean") {
			q.PreviousBrokerEpoch = l.image.Brokers[id].Epoch
		}
		q.Listeners = append(q.Listeners, kmsg.BrokerRegistrationRequestListener{Host: "127.0.0.1", Port: 9092})
		r := l.do(q).(*kmsg.BrokerRegistrationResponse)
		say("%s, epoch %d", code(r.ErrorCode), r.BrokerEpoch)
	case "heartbeat":
		id := int32(l.num(args[1]))
		epoch := int64(-1)
		if b := l.image.Brokers[id]; b != nil {
			epoch = b.Epoch
		}
		q := latest(kmsg.NewPtrBrokerHeartbeatRequest())
		q.BrokerID, q.WantFence, q.WantShutdown = id, has("fence"), has("shutdown")
		q.BrokerEpoch = l.num(take(opts, "epoch", fmt.Sprint(epoch)))
		q.CurrentMetadataOffset = l.num(take(opts, "offset", fmt.Sprint(l.image.Index)))
		r := l.do(q).(*kmsg.BrokerHeartbeatResponse)
		say("%s, caught up %v, fenced %v, should shut down %v", code(r.ErrorCode), r.IsCaughtUp, r.IsFenced, r.ShouldShutdown)
	case "create":
		qt := kmsg.NewCreateTopicsRequestTopic()
		qt.Topic = take(opts, "name", args[1])
		qt.NumPartitions, qt.ReplicationFactor = int32(l.num(take(opts, "partitions", "-1"))), int16(l.num(take(opts, "rf", "-1")))
		for i, a := range strings.FieldsFunc(take(opts, "assign", ""), func(r rune) bool { return r == '/' }) {
			qt.ReplicaAssignment = append(qt.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: l.list(a)})
		}
		q := latest(kmsg.NewPtrCreateTopicsRequest())
		q.ValidateOnly = has("validate")
		twice := has("twice")
		for _, k := range sortedKeys(opts) {
			c := kmsg.CreateTopicsRequestTopicConfig{Name: k}
			if opts[k] != "null" {
				c.Value = kmsg.StringPtr(opts[k])
			}
			qt.Configs = append(qt.Configs, c)
		}
		if q.Topics = append(q.Topics, qt); twice {
			q.Topics = append(q.Topics, qt)
		}
		var r *kmsg.CreateTopicsResponse
		if q.ValidateOnly {
			e := newEdit(l.image, l.image.Index+1, "lab", l.flags)
			r = e.apply(q, false).(*kmsg.CreateTopicsResponse)
		} else {
			r = l.do(q).(*kmsg.CreateTopicsResponse)
		}
		for _, t := range r.Topics {
			say("%s, %d partitions, %d replicas", because(t.ErrorCode, t.ErrorMessage), t.NumPartitions, t.ReplicationFactor)
			if t.Configs == nil {
				l.t.Errorf("create %s: Configs is nil, which is null to a client", t.Topic)
			}
		}
	case "delete":
		q := latest(kmsg.NewPtrDeleteTopicsRequest())
		var qt kmsg.DeleteTopicsRequestTopic
		if id, ok := opts["id-of"]; ok {
			qt.TopicID = [16]byte{1}
			if t := l.image.Topics[id]; t != nil {
				qt.TopicID = t.ID
			}
		}
		if len(args) > 1 {
			qt.Topic = &args[1]
		}
		q.Topics = append(q.Topics, qt)
		if has("v5") {
			q.Version, q.TopicNames = 5, args[1:2]
		}
		for _, t := range l.do(q).(*kmsg.DeleteTopicsResponse).Topics {
			say("%s", because(t.ErrorCode, t.ErrorMessage))
		}
	case "grow":
		qt := kmsg.CreatePartitionsRequestTopic{Topic: args[1], Count: int32(l.num(args[2]))}
		for _, a := range strings.FieldsFunc(take(opts, "assign", ""), func(r rune) bool { return r == '/' }) {
			qt.Assignment = append(qt.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: l.list(a)})
		}
		q := latest(kmsg.NewPtrCreatePartitionsRequest())
		q.Topics = append(q.Topics, qt)
		for _, t := range l.do(q).(*kmsg.CreatePartitionsResponse).Topics {
			say("%s", because(t.ErrorCode, t.ErrorMessage))
		}
	case "configure": // topic, then key=value or the names of keys to delete
		res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: args[1]}
		if args[1] == "broker" {
			res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeBroker, ""
		}
		for _, k := range sortedKeys(opts) {
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: k, Op: kmsg.IncrementalAlterConfigOpSet, Value: kmsg.StringPtr(opts[k])})
		}
		for _, k := range args[2:] {
			op := kmsg.IncrementalAlterConfigOpDelete
			if k, ok := strings.CutPrefix(k, "append:"); ok {
				res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: k, Op: kmsg.IncrementalAlterConfigOpAppend, Value: &k})
				continue
			}
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: k, Op: op})
		}
		q := latest(kmsg.NewPtrIncrementalAlterConfigsRequest())
		q.Resources = append(q.Resources, res)
		for _, r := range l.do(q).(*kmsg.IncrementalAlterConfigsResponse).Resources {
			say("%s", because(r.ErrorCode, r.ErrorMessage))
		}
		if t := l.image.Topics[args[1]]; t != nil {
			say("%v", t.Configs)
		}
	case "elect": // preferred or unclean, then topic and partition, or nothing for all
		q := latest(kmsg.NewPtrElectLeadersRequest())
		q.ElectionType = map[string]int8{"preferred": preferredElection, "unclean": uncleanElection, "other": 9}[args[1]]
		if len(args) > 2 {
			q.Topics = append(q.Topics, kmsg.ElectLeadersRequestTopic{Topic: args[2], Partitions: []int32{int32(l.num(args[3]))}})
		}
		r := l.do(q).(*kmsg.ElectLeadersResponse)
		say("%s", code(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				say("%s-%d: %s", t.Topic, p.Partition, because(p.ErrorCode, p.ErrorMessage))
			}
		}
	case "isr": // topic, partition, isr=; by default from the leader and with all epochs right
		q := latest(kmsg.NewPtrAlterPartitionRequest())
		qp := kmsg.NewAlterPartitionRequestTopicPartition()
		qp.Partition = int32(l.num(args[2]))
		qt := kmsg.AlterPartitionRequestTopic{TopicID: [16]byte{9}}
		sender := none
		if t := l.image.Topics[args[1]]; t != nil && qp.Partition >= 0 && int(qp.Partition) < len(t.Partitions) {
			p := t.Partitions[qp.Partition]
			qp.LeaderEpoch, qp.PartitionEpoch, sender = p.LeaderEpoch, p.PartitionEpoch, p.Leader
		}
		if t := l.image.Topics[args[1]]; t != nil {
			qt.TopicID = t.ID
		}
		qp.LeaderEpoch += int32(l.num(take(opts, "leader-epoch", "0")))
		qp.PartitionEpoch += int32(l.num(take(opts, "change", "0")))
		qp.LeaderRecoveryState = int8(l.num(take(opts, "recovery", "0")))
		q.BrokerID = int32(l.num(take(opts, "by", fmt.Sprint(sender))))
		if b := l.image.Brokers[q.BrokerID]; b != nil {
			q.BrokerEpoch = b.Epoch
		}
		q.BrokerEpoch += l.num(take(opts, "sender-epoch", "0"))
		off := l.num(take(opts, "member-epoch", "0"))
		for _, id := range l.list(opts["isr"]) {
			m := kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: -1}
			if b := l.image.Brokers[id]; b != nil && !has("epochs-unknown") {
				m.BrokerEpoch = b.Epoch + off
			}
			qp.NewEpochISR = append(qp.NewEpochISR, m)
		}
		qt.Partitions = append(qt.Partitions, qp)
		q.Topics = append(q.Topics, qt)
		r := l.do(q).(*kmsg.AlterPartitionResponse)
		if r.ErrorCode != 0 {
			say("%s", code(r.ErrorCode))
			break
		}
		rp := r.Topics[0].Partitions[0]
		if rp.ErrorCode != 0 {
			say("%s", code(rp.ErrorCode))
			break
		}
		say("ok, leader %d/%d, change %d, isr %v", rp.LeaderID, rp.LeaderEpoch, rp.PartitionEpoch, rp.ISR)
	case "producer-ids":
		q := latest(kmsg.NewPtrAllocateProducerIDsRequest())
		q.BrokerID = int32(l.num(args[1]))
		if b := l.image.Brokers[q.BrokerID]; b != nil {
			q.BrokerEpoch = b.Epoch + l.num(take(opts, "epoch", "0"))
		}
		r := l.do(q).(*kmsg.AllocateProducerIDsResponse)
		say("%s, %d from %d", code(r.ErrorCode), r.ProducerIDLen, r.ProducerIDStart)
	default:
		l.t.Fatalf("script: unknown command %q", args[0])
	}
	return out
}
