package linearizability

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ackproof/model"
)

// A duel is a checker against an oracle that shares nothing with it but the history: a search through all orders, porcupine, or the definition
// applied literally. `go test` has each fight over a few thousand random histories, `go test -fuzz` has the bytes of its corpus stand for the dice, and
//
//	HISTORIES=300000 go test -run Oracle -v -timeout 0 ./linearizability
//
// has each fight over so many and prints what came of it as a table.
type duel struct {
	name string
	n    int // histories that `go test` looks at
	// fight draws a small history, legal or damaged, and has both decide it. The error is a disagreement.
	fight func(t testing.TB, r *rand.Rand, s *score) error
	bad   int                   // of how many histories one at least has to be illegal, and one legal; 0: 20
	open  int                   // of how many one at most may be undecided; 0: none
	kinds map[model.Anomaly]int // of how many histories one at least has to show the anomaly
}

// score is what was seen of the histories so far, for each question that the oracle was asked.
type score struct {
	questions []*question
	kinds     map[model.Anomaly]int64
	notes     map[string]int // whatever else a duel counts
}

type question struct {
	name                  string
	legal, bad, undecided int
}

func newScore() *score {
	return &score{kinds: make(map[model.Anomaly]int64), notes: make(map[string]int)}
}

// asked counts one history. The name is "" where there is one question only.
func (s *score) asked(name string, legal, undecided bool) {
	var q *question
	for _, o := range s.questions {
		if o.name == name {
			q = o
		}
	}
	if q == nil {
		q = &question{name: name}
		s.questions = append(s.questions, q)
	}
	if legal {
		q.legal++
	} else {
		q.bad++
	}
	if undecided {
		q.undecided++
	}
}

// campaign has the rows of the table that is printed if HISTORIES is set.
var campaign []string

func TestMain(m *testing.M) {
	code := m.Run()
	if len(campaign) > 0 {
		fmt.Printf("\n%-45s %10s %8s %10s %13s %8s\n%s", "checker", "histories", "illegal", "undecided", "disagreements", "seconds", strings.Join(campaign, ""))
	}
	os.Exit(code)
}

// scaled is how many random histories a test looks at; HISTORIES overrides it.
func scaled(t *testing.T, n int) int {
	if s := os.Getenv("HISTORIES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n <= 0 {
			t.Fatalf("HISTORIES=%q: expected a positive number", s)
		}
	}
	return n
}

// enough is the number of disagreements after which a duel ends.
const enough = 10

func (d *duel) test(t *testing.T) {
	n, wrong, begin := scaled(t, d.n), 0, time.Now()
	s := newScore()
	for i := 0; i < n && wrong < enough; i++ {
		if err := d.fight(t, rand.New(rand.NewPCG(1, uint64(i))), s); err != nil {
			wrong++
			t.Errorf("history %d: %v", i, err)
		}
	}
	took := time.Since(begin)
	for _, q := range s.questions {
		all := q.legal + q.bad
		row := fmt.Sprintf("%-45s %10d %7.1f%% %10d %13d %8.1f\n", strings.TrimSpace(d.name+" "+q.name), all, 100*float64(q.bad)/float64(all), q.undecided, wrong, took.Seconds())
		t.Log(strings.TrimSpace(row))
		if os.Getenv("HISTORIES") != "" {
			campaign = append(campaign, row)
		}
		least := n / 20
		if d.bad > 0 {
			least = n / d.bad
		}
		if q.legal < least || q.bad < least {
			t.Errorf("%s: %d legal and %d other histories: too few of one kind to prove anything", q.name, q.legal, q.bad)
		}
		if d.open == 0 && q.undecided > 0 || d.open > 0 && q.undecided > n/d.open {
			t.Errorf("%s: %d of %d histories undecided", q.name, q.undecided, all)
		}
	}
	for kind, share := range d.kinds {
		if s.kinds[kind] < int64(n/share) {
			t.Errorf("%d × %s in %d histories: too few to prove anything", s.kinds[kind], kind, n)
		}
	}
	if len(s.kinds)+len(s.notes) > 0 {
		t.Log(s.kinds, s.notes)
	}
}

func (d *duel) fuzz(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 8, 32, 64, 128, 128, 256, 256} {
		seed := make([]byte, n)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dice []byte) {
		if err := d.fight(t, rand.New(throw(dice)), newScore()); err != nil {
			t.Fatal(err)
		}
	})
}

// dice are a source of chance out of a string of bytes: each is one throw. When all are thrown, a generator that they seed goes on.
type dice struct {
	bytes []byte
	then  *rand.PCG
}

func throw(bytes []byte) *dice {
	h := fnv.New64a()
	h.Write(bytes)
	return &dice{bytes, rand.NewPCG(1, h.Sum64())}
}

func (d *dice) Uint64() uint64 {
	if len(d.bytes) == 0 {
		return d.then.Uint64()
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return uint64(b) * 0x0101010101010101 // package rand looks at low bits, or at high ones
}

// TestDice: bytes decide, one a throw, and chance goes on behind them.
func TestDice(t *testing.T) {
	r := rand.New(throw([]byte{0x00, 0x41, 0xff}))
	if a, b, c := r.IntN(4), r.IntN(4), r.IntN(10); a != 0 || b != 1 || c != 9 {
		t.Errorf("%d, %d, %d, want 0, 1, 9", a, b, c)
	}
	if a, b := rand.New(throw(nil)).Uint64(), rand.New(throw(nil)).Uint64(); a != b || a == 0 {
		t.Errorf("%d and %d of no dice, want the same number", a, b)
	}
}
