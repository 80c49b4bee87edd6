package linearizability

import (
	"fmt"
	"iter"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// Level is what is promised of the order of transactions.
type Level uint8

// The levels, each weaker than the one before it.
const (
	// StrictSerializable: as if one after the other, and in real time: who ended before another began comes first.
	StrictSerializable Level = iota
	// Serializable: as if one after the other.
	Serializable
	// SnapshotIsolation: each reads a snapshot and adds its writes to the latest version of what it writes (Cerone and Gotsman: every cycle of
	// dependencies has two neighbouring write-after-reads).
	SnapshotIsolation
	// ReadCommitted: nothing aborted, intermediate or circular is read (Adya's PL-2).
	ReadCommitted
)

var levelNames = [...]string{"strict-serializable", "serializable", "snapshot-isolation", "read-committed"}

// String gives the usual name.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level-%d", l)
}

// ParseLevel finds the level of a name.
func ParseLevel(name string) (Level, error) {
	if i := slices.Index(levelNames[:], name); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("isolation level %q, expected one of %v", name, levelNames)
}

// breaks is the table of what breaks which promise, in the order in which it is reported. For serializability it names the weakest
// level that is broken; every stronger one is broken too.
var breaks = []struct {
	anomaly   model.Anomaly
	level     Level
	atomicity bool
}{
	{model.G0, ReadCommitted, false},
	{model.G1a, ReadCommitted, true},
	{model.G1b, ReadCommitted, false},
	{model.G1c, ReadCommitted, false},
	{model.IncompatibleOrder, ReadCommitted, false},
	{model.InconsistentOffset, ReadCommitted, false},
	{model.Duplicate, ReadCommitted, false},
	{model.Phantom, ReadCommitted, false},
	{model.Internal, SnapshotIsolation, false},
	{model.LostUpdate, SnapshotIsolation, false},
	{model.GSingle, SnapshotIsolation, false},
	{model.GNonadjacent, SnapshotIsolation, false},
	{model.G2Item, Serializable, false},
	// Over logs only:
	{model.TornTxn, never, true},
	{model.LostAcked, never, true},
	{model.DirtyRead, never, true},
	{model.PrecommittedRead, never, true},
}

// never is weaker than every level: no promise of an order is broken.
const never = ReadCommitted + 1

// brokenBy tells whether an anomaly breaks a claim at a level.
func brokenBy(claim model.Claim, a model.Anomaly, l Level) bool {
	for _, b := range breaks {
		if b.anomaly == a {
			return claim == model.Atomicity && b.atomicity || claim == model.Serializability && b.level != never && l <= b.level
		}
	}
	return false
}

// Versions is what the transactions work on.
type Versions uint8

// What transactions work on.
const (
	// AnyVersions: logs if a Read has a single record or anything an Offset above 0, else lists. A history that changes its mind is refused.
	AnyVersions Versions = iota
	// Lists that are read as a whole (list-append): a Read has a List, or Nil for an empty one. Offsets mean nothing.
	Lists
	// Logs with offsets: a Read has one record and its Offset, or a List of records from its Offset on. There is one for each record or stretch that
	// was found. A Read with Nil or an empty List says that there was nothing at its Offset when it was asked; with Offset −1 it says nothing.
	Logs
)

// TransactionOptions of a check. The zero value asks for strict serializability, and of logs for atomicity besides.
type TransactionOptions struct {
	Level    Level
	Claims   []model.Claim // of Serializability and Atomicity; nil: serializability, and atomicity too where there are logs
	Versions Versions
	// Sessions: the order of each process counts at every level, not only at the strict one.
	Sessions bool
	// Interleaved, of logs: records of different transactions may stand between each other (as in Kafka), so the order of writes is no evidence of an
	// order of transactions, nor is what a read did not find. What was read still is.
	Interleaved bool
	// WholeReads, of logs: a transaction reads a log to its end, so what follows the last record that it found was not there. Otherwise only a Read
	// with Nil says so.
	WholeReads bool
	// AtomicReads, of logs: a transaction's records in one log become readable together, so a read that ends among them is G1b. For lists that is always so.
	AtomicReads bool
	Floors      model.Floors // nil: at least one transaction that went through and one read
	Facts       model.Facts  // what the harness knows besides
	Places      int          // places listed per anomaly; 0: 20
}

// TransactionAnswer is everything that a history of transactions says.
type TransactionAnswer struct {
	Claims     []model.ClaimResult // in the order in which they were asked for
	Operations model.Operations
	Level      Level
	Versions   Versions // Lists or Logs
}

// Verdict is the worst of the claims.
func (a *TransactionAnswer) Verdict() model.Verdict { return model.WorstOf(a.Claims) }

// TransactionClaims are the claims that CheckTransactions decides.
func TransactionClaims() []model.Claim {
	return []model.Claim{model.Serializability, model.Atomicity}
}

// CheckTransactions decides from a history of Objects with Reads and AppendTos whether an order of the transactions explains it. The error is an
// histories.ErrMalformed, or that of reading the events; it is never a verdict.
//
// # From reads to a graph
//
// Values are unique, so a read names the appends that it saw, and the longest list that anybody read of an object is the order of its versions as far as
// it was ever seen; in a log the offsets are that order. A list that is no beginning of the longest one is an anomaly of its own. With the order of
// versions known nothing is left to search. A transaction a must come before b if
//
//   - ww: a wrote a version and b the next one;
//   - wr: a wrote the last version that b read;
//   - rw: b wrote the first version that a's read did not have;
//   - realtime: a ended before b began (strict serializability); process: the same process did a and then b (Sessions).
//
// A committed append that nobody saw comes after every version that anybody saw, hence after the last writer and after all who read up to there; one node
// for each object stands for the product of those edges, and transactions on both sides go round it (see unseen). Real time is a chain with
// a node for each stretch of completions, which stands for all pairs. So the graph has as many edges as the history has steps, up to a factor.
//
// Serializable: if the graph has no cycle, any order that keeps all edges is a serial run. Each list grows in the order of its versions by ww and the
// edges to unseen appends. A reader stands behind the writer of the last version it read by wr and before that of the next by rw, so it reads exactly
// that; its own appends are checked apart (internal). If there is a cycle, no order keeps its edges, each of which every serial run must keep. With
// the chain the same holds of strict serializability.
//
// Snapshot isolation: exactly the cycles in which two neighbours are rw are allowed (Cerone and Gotsman, "Analysing snapshot isolation"). A graph with each node twice, reached by
// rw and reached otherwise, has a cycle iff there is one that is not. This needs the whole order of versions: of several unseen appends to one
// object it is not known. Two that read the same version are a lost update in any order; otherwise the order of invocation is tried, and if that does
// not do the answer is undecided.
//
// Read committed is Adya's PL-2: no cycle of ww and wr alone, nothing read that was aborted (G1a), or written over by its own writer (G1b).
//
// A transaction of unknown outcome has committed iff somebody read one of its appends: if nobody did, leaving it out explains as much as keeping it.
// What it read itself is not known. A refused transaction (Fail) is believed to have done nothing.
//
// # Cycles
//
// Cycles lie within strongly connected components, found in one pass (Tarjan). In each component the classes of cycles are looked for from G0 to G2-item,
// with dependencies alone, and only if there is none with the order of processes and with real time. One cycle is reported for each component of each class, the
// shortest as long as a budget of 4 million edges lasts. The verdict does not depend on that budget.
//
// # Logs
//
// A read of a log may stop anywhere, so rw follows only from a read that found nothing, or under WholeReads. With Interleaved only wr and the order in
// time count. Atomicity compares each committed transaction with the final reads, those begun after the mark "drain", or after the last transaction
// with appends has ended if there is no mark: some records there and others not is torn, none there is lost. The final reads of one log are taken
// together, from its start to the furthest place that one of them reached.
//
// # Cost
//
// Linear in steps and in the elements of the lists that were read, plus sorting of values and offsets that are not in order already. Memory: 28 bytes a
// transaction, 3 an event, 32 a step, 20 a version, and for the graph 12 an edge and 20 a node.
//
// # Not promised
//
// Values that repeat on one object leave everything undecided, and the reason names them. Predicates, and registers without an order of versions, are
// other problems (NP-hard). Retention of logs is not modelled: what was trimmed before the final read counts as missing. Nor are transactions that never
// end (hanging), which take the broker's own word to see. Components and not single cycles are counted.
func CheckTransactions(events iter.Seq2[histories.Event, error], o TransactionOptions) (*TransactionAnswer, error) {
	if o.Level > ReadCommitted {
		return nil, fmt.Errorf("isolation level %d, expected one of %v", o.Level, levelNames)
	}
	if o.Places <= 0 {
		o.Places = 20
	}
	if o.Floors == nil {
		o.Floors = transactionFloors
	}
	t, err := loadTransactions(events, o)
	if err != nil {
		return nil, err
	}
	if o.Claims == nil {
		o.Claims = []model.Claim{model.Serializability}
		if t.logs {
			o.Claims = append(o.Claims, model.Atomicity)
		}
	}
	t.options.Claims = o.Claims
	a := &TransactionAnswer{Operations: t.counts, Level: o.Level, Versions: Lists}
	if t.logs {
		a.Versions = Logs
	}
	t.place()
	if t.repeated == "" {
		t.direct()
		if slices.Contains(o.Claims, model.Serializability) {
			t.cycles()
		}
		if t.logs {
			t.torn()
		}
	}
	for _, claim := range o.Claims {
		a.Claims = append(a.Claims, t.judge(claim))
	}
	return a, nil
}

var transactionFloors = model.Floors{
	model.Serializability: {Evidence: map[string]int64{"transactions": 1, "reads": 1}},
	model.Atomicity:       {Evidence: map[string]int64{"transactions": 1, "read_back": 1}},
}

// judge turns the findings into the result of a claim.
func (t *transactions) judge(claim model.Claim) model.ClaimResult {
	r := model.ClaimResult{ID: claim, Evidence: map[string]int64{}, Anomalies: []model.AnomalyResult{}, Permitted: []model.PermittedLoss{}}
	undecided := t.repeated
	switch claim {
	case model.Serializability:
		r.Evidence["transactions"], r.Evidence["reads"], r.Evidence["versions"] = t.committed, t.reads, t.versions
		r.Evidence["dependencies"] = t.dependencies
		if undecided == "" {
			undecided = t.unordered
		}
	case model.Atomicity:
		r.Evidence["transactions"], r.Evidence["read_back"] = t.committed, t.readBack
		switch {
		case undecided != "":
		case !t.logs:
			undecided = "transactions over lists are judged by serializability; atomicity is decided over logs"
		case t.unread > 0:
			undecided = fmt.Sprintf("%d records of %d transactions were neither found nor ruled out: no final read went past their place, the first is %s", t.unread, t.unreadTxns, t.firstUnread)
		}
	default:
		undecided = "this checker does not decide the claim"
	}
	for _, b := range breaks {
		f := t.found[b.anomaly]
		if f == nil || !brokenBy(claim, b.anomaly, t.options.Level) {
			continue
		}
		r.Anomalies = append(r.Anomalies, model.AnomalyResult{Kind: b.anomaly, Count: f.count, Proof: t.certificate(claim, b.anomaly, f), Where: f.where})
	}
	judge(&r, undecided, t.options.Facts, t.options.Floors.Missing(claim, r.Evidence, model.Contract{}, t.options.Facts))
	return r
}
