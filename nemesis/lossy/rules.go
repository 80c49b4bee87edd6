package lossy

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Op is what an operation does.
type Op string

// The operations that rules speak of. A flush is fsync(2), fdatasync(2), msync(2), or a write to a file that was opened with O_SYNC or O_DSYNC.
const (
	Create   Op = "create"
	Open     Op = "open"
	Read     Op = "read" // what the kernel has in its cache is not asked for
	Write    Op = "write"
	Truncate Op = "truncate"
	Flush    Op = "flush"
	Rename   Op = "rename"
	Remove   Op = "remove" // of a file or a folder
	MakeDir  Op = "make dir"
	FlushDir Op = "flush dir"
)

// Growing are the operations that a full disk refuses.
func Growing() []Op { return []Op{Create, Write, MakeDir} }

// Rule makes operations go wrong. The zero value matches every operation and does nothing but count.
type Rule struct {
	Ops  []Op   // empty: all
	Glob string // of the last parts of the path, as many as it has itself, each as in path.Match; "": any
	// Skip lets so many pass first, and Count hits so many of the rest; 0: all of them.
	Skip, Count int
	// Chance to be hit, of those that Skip has not let pass; 0: always.
	Chance float64

	Err   syscall.Errno // what the process is told; the operation has no effect, but see Drop
	Delay time.Duration // how long it takes more; a process that is killed meanwhile does not wait
	// Hang lets it take as long as the rule is in force.
	Hang bool
	// Drop, of a flush with Err: what was to be flushed is taken for flushed from now on, and is not. The next flush tells of no error. That is what Linux does (fsyncgate).
	Drop bool
	// Lie, of a flush: it says that all is well, and nothing lasts that did not before.
	Lie bool
	// Short, of a write: half of it is written, and the process is told so.
	Short bool
}

// Ruling is a rule in force.
type Ruling struct {
	rule  Rule
	rules *rules
	pick  *rand.Rand
	seen  int // that matched; guarded by rules.mu
	hits  atomic.Int64
	gone  chan struct{} // closed when it is no longer in force
	once  sync.Once
}

// Hits counts the operations that it has hit.
func (r *Ruling) Hits() int { return int(r.hits.Load()) }

// End takes the rule out of force and lets go whatever it holds. It may be called twice.
func (r *Ruling) End() {
	r.once.Do(func() {
		r.rules.mu.Lock()
		r.rules.all = slices.DeleteFunc(r.rules.all, func(o *Ruling) bool { return o == r })
		r.rules.some.Store(int32(len(r.rules.all)))
		r.rules.mu.Unlock()
		close(r.gone)
	})
}

type rules struct {
	some atomic.Int32 // how many there are, for the many operations that meet none
	mu   sync.Mutex
	all  []*Ruling
}

// Add puts a rule into force. Of those that match an operation the oldest one counts. The seed is for Chance.
func (f *FS) Add(r Rule, seed uint64) *Ruling {
	out := &Ruling{rule: r, rules: &f.rules, pick: rand.New(rand.NewPCG(seed, 0x6c6f737379)), gone: make(chan struct{})}
	f.rules.mu.Lock()
	defer f.rules.mu.Unlock()
	f.rules.all = append(f.rules.all, out)
	f.rules.some.Store(int32(len(f.rules.all)))
	return out
}

// match finds the rule that hits the operation, nil if there is none.
func (r *rules) match(op Op, name func() string) *Ruling {
	if r.some.Load() == 0 {
		return nil
	}
	p := name()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.hit(op, p) {
			one.hits.Add(1)
			return one
		}
	}
	return nil
}

func (r *Ruling) hit(op Op, name string) bool {
	rule := r.rule
	if len(rule.Ops) > 0 && !slices.Contains(rule.Ops, op) {
		return false
	}
	if !matches(rule.Glob, name) {
		return false
	}
	r.seen++
	n := r.seen - rule.Skip
	if n <= 0 || rule.Count > 0 && r.Hits() >= rule.Count {
		return false
	}
	return rule.Chance == 0 || r.pick.Float64() < rule.Chance
}

// matches tells whether the last parts of the name are as the pattern says; the empty pattern is that of any name.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	parts := strings.Split(name, "/")
	n := strings.Count(glob, "/") + 1
	if n > len(parts) {
		return false
	}
	ok, _ := path.Match(glob, strings.Join(parts[len(parts)-n:], "/"))
	return ok
}
