package cluster

import (
	"math/rand/v2"
	"slices"

	"ackproof/broker/storage"
	"ackproof/broker/storage/memlog"
)

// memory is a Disk of memory logs.
type memory struct {
	bad
	names []string
	logs  map[string]*memlog.Disk // looked up only
}

// Failing is how a disk fails. The zero value: not at all.
type Failing struct {
	Err   error // of operations that change something
	Once  bool  // of the next one only
	Flush bool  // of flushes only; what a failed one should have kept is not kept by later ones either
}

// bad is a disk's state of failing.
type bad struct {
	how    Failing
	failed int
}

func (b *bad) Fail(how Failing) { b.how = how }

func (b *bad) Failures() int { return b.failed }

// next is the error of the next operation.
func (b *bad) next(flush bool) error {
	err := b.how.Err
	if err == nil || b.how.Flush && !flush {
		return nil
	}
	b.failed++
	if b.how.Once {
		b.how = Failing{}
	}
	return err
}

// Memory makes a disk of memory logs: quick, and without recovery code of its own. At a loss of power each log keeps what was flushed and some of the
// batches that follow it.
func Memory(int) Disk { return &memory{logs: map[string]*memlog.Disk{}} }

func (m *memory) Open(folder string) (storage.Log, error) {
	d := m.logs[folder]
	if d == nil {
		d = memlog.NewDisk()
		d.Fail = func(op memlog.Op) error { return m.next(op == memlog.Flush) }
		m.logs[folder] = d
		m.names = append(m.names, folder)
		slices.Sort(m.names)
	}
	return d.Open()
}

func (m *memory) Folders() []string { return slices.Clone(m.names) }

func (m *memory) Remove(folder string) {
	delete(m.logs, folder)
	m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == folder })
}

func (m *memory) Crash() {
	for _, name := range m.names {
		m.logs[name].Crash(1 << 30)
	}
}

func (m *memory) PowerLoss(r *rand.Rand) {
	for _, name := range m.names {
		m.logs[name].Crash(r.IntN(4))
	}
}
