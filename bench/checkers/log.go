package main

import (
	"fmt"
	"iter"
	"os"
	"strings"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// The log history: eight clients with an operation open most of the time, on six partitions. Half of the operations append one record, half fetch up to four. 2 % have
// no known outcome: of such appends half are in the log. One in a hundred asks for the end. In the end everything is read.
const (
	clients    = 8
	partitions = 6
	lostOne    = 50   // one in so many has no known outcome
	drainReply = 1000 // records of one fetch of the drain
)

// kept is a record in a log: its producer and sequence number.
type kept struct{ producer, sequence int32 }

// client is one client of the log history.
type client struct {
	process, sequence int32
	open              bool
	end               histories.Event // what its open operation will end with
	effect            func()          // what that operation is still to do to the log
}

type logMaker struct {
	*journal
	known    bool // every outcome is
	logs     [partitions][]kept
	position [partitions]int64 // of the reader
	reading  [partitions]bool  // it has a fetch open
	clients  [clients]client
	process  int32
}

func writeLog(j *journal, n int, planted bool) { (&logMaker{journal: j}).write(n, planted) }

// writeKnownLog knows the outcome of everything.
func writeKnownLog(j *journal, n int, planted bool) {
	(&logMaker{journal: j, known: true}).write(n, planted)
}

func (m *logMaker) write(n int, planted bool) {
	j := m.journal
	for i := range m.clients {
		m.retire(&m.clients[i])
	}
	j.phase("load")
	for made, open := 0, 0; made < n || open > 0; {
		c := &m.clients[j.r.IntN(clients)]
		switch {
		case c.open:
			m.finish(c)
			open--
		case made < n:
			m.begin(c, made)
			made++
			open++
		}
	}
	j.phase("drain")
	lost := -1
	if planted {
		lost = len(m.logs[0]) / 2
	}
	m.drain(lost)
	j.phase("end")
}

// retire makes a client go on as a new process.
func (m *logMaker) retire(c *client) {
	m.process++
	c.process, c.sequence = m.process, 0
}

func (m *logMaker) begin(c *client, number int) {
	n := int32(m.r.IntN(partitions))
	log := &m.logs[n]
	ev := histories.Event{Process: c.process, Partition: n}
	end := histories.Event{Type: histories.OK, Process: c.process, Partition: n, LeaderEpoch: 1}
	unknown := m.r.IntN(lostOne) == 0 && !m.known
	lost := unknown && m.r.IntN(2) == 0
	switch {
	case number%100 == 0:
		ev.Kind = histories.EndOffset
		c.effect = func() { c.end.Offset = int64(len(*log)) }
	case number%2 == 0 && !m.reading[n]:
		m.reading[n] = true
		ev.Kind, ev.Session, ev.Offset = histories.Fetch, n+1, m.position[n]
		c.effect = func() {
			c.end.HighWatermark = int64(len(*log))
			for end := min(ev.Offset+4, int64(len(*log))); m.position[n] < end && !unknown; m.position[n]++ {
				c.end.Runs = appendRecord(c.end.Runs, m.position[n], (*log)[m.position[n]])
			}
		}
	default:
		record := kept{c.process, c.sequence}
		c.sequence++
		ev.Kind, ev.Runs = histories.Append, []histories.Run{{Producer: record.producer, Sequence: int64(record.sequence), Count: 1}}
		c.effect = func() {
			c.end.Offset = int64(len(*log))
			if !lost {
				*log = append(*log, record)
			}
		}
	}
	if unknown {
		end.Type, end.Code = histories.Info, histories.NoAnswer
	}
	end.Kind, end.Session, end.Offset = ev.Kind, ev.Session, ev.Offset
	end.Op = m.event(ev)
	end.Runs, c.end, c.open = c.end.Runs[:0], end, true
	if m.r.IntN(2) == 0 { // it takes effect at once, else as it ends
		c.effect()
		c.effect = func() {}
	}
}

func (m *logMaker) finish(c *client) {
	c.effect()
	if c.end.Kind == histories.Fetch {
		m.reading[c.end.Partition] = false
	}
	if c.open = false; c.end.Type == histories.Info {
		c.end.Offset, c.end.HighWatermark, c.end.LeaderEpoch = 0, 0, 0
		m.event(c.end)
		m.retire(c)
		return
	}
	m.event(c.end)
}

// drain reads every log to its end. Offset lost of partition 0 is passed without its record.
func (m *logMaker) drain(lost int) {
	for n := range m.logs {
		fetch := func(from int64, runs []histories.Run) {
			m.over(histories.Event{Kind: histories.Fetch, Process: m.process + 1, Partition: int32(n), Session: int32(partitions + n + 1), Offset: from},
				histories.Event{Type: histories.OK, Runs: runs, Offset: from, HighWatermark: int64(len(m.logs[n])), LeaderEpoch: 1})
		}
		var runs []histories.Run
		from := int64(0)
		for at, record := range m.logs[n] {
			if n != 0 || at != lost {
				runs = appendRecord(runs, int64(at), record)
			}
			if int64(at+1)-from == drainReply || at+1 == len(m.logs[n]) {
				fetch(from, runs)
				from, runs = int64(at+1), runs[:0]
			}
		}
		fetch(from, nil)
	}
}

func appendRecord(runs []histories.Run, offset int64, k kept) []histories.Run {
	return histories.AppendRecord(runs, offset, histories.Value{Producer: k.producer, Sequence: int64(k.sequence)}, histories.Sound)
}

// logContract demands everything of a log that a history can show, the opt-in claim too.
func logContract() (model.Contract, linearizability.Options) {
	c := model.LogContract(model.Contract{System: "bench", Workload: "log", Partitions: partitions, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true})
	o := linearizability.Options{Floors: model.HistoryFloors(), Claims: []model.Claim{model.ReadAfterAck}}
	for _, p := range c.Promises {
		if p.Claim != model.Liveness {
			o.Claims = append(o.Claims, p.Claim)
		}
	}
	return c, o
}

func checkLog(events iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error) {
	c, o := logContract()
	a, err := linearizability.CheckLog(events, c, model.Facts{DrainComplete: true, CopiesRead: 1, CopiesWanted: 1}, o)
	if err != nil {
		return nil, err
	}
	return a.Claims, nil
}

// logFigures shows how the log checker grows, with and without a violation.
func logFigures(b *bench) error {
	title("Log, 2 %% without a known outcome (all claims of the strongest contract; check = decode and check, less decoding alone)")
	for n := 10_000; n <= b.largest; n *= 10 {
		for _, planted := range []bool{false, true} {
			if err := logFigure(b, n, planted); err != nil {
				return err
			}
		}
	}
	return nil
}

func logFigure(b *bench, n int, planted bool) error {
	path, _, err := b.history("log", n, planted, histories.Native)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	want, what := model.Held, fmt.Sprintf("%d operations", n)
	if planted {
		want, what = model.Violated, what+", one lost"
	}
	read, check, err := b.checked("log", path, want)
	if err != nil {
		return err
	}
	figures := fmt.Sprintf("decode %6.3f + check %6.3f = %6.3f CPU-s (%4.0f ns/op)  peak %6.1f MB", read.CPU, check.CPU-read.CPU, check.CPU, check.CPU/float64(n)*1e9, check.PeakMB)
	if planted {
		figures += "  certificates: " + strings.Join(check.Anomalies, ", ")
	}
	goal, met := "", false
	switch n {
	case 1_000_000:
		goal, met = "≤ 0.5 CPU-s and ≤ 150 MB", check.CPU <= 0.5 && check.PeakMB <= 150
	case 10_000_000:
		goal, met = "check ≤ 1 CPU-s", check.CPU-read.CPU <= 1
	}
	row(what, figures, goal, met)
	return nil
}
