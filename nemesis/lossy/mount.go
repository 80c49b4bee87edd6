package lossy

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// mount is how the processes of one life of the node see the disk.
type mount struct {
	f     *FS
	life  sync.RWMutex  // held by each operation for reading
	dead  bool          // guarded by life
	still chan struct{} // closed when the power is about to go: nothing has an effect any more, and nobody is answered
	ended chan struct{}
	calm  sync.Once // of still
	once  sync.Once // of ended
	leave func()    // takes the mount away, where its end does not; nil: nothing to do

	// What the kernel knows, guarded by FS.mu: it tells when it forgets.
	known   map[*object]int // how often it was told of an object
	handles map[uint64]*handle
	next    uint64 // number of a handle
}

type handle struct {
	o       *object
	entries []string // of an open folder, in the order in which they are listed
}

func newMount(f *FS) *mount {
	return &mount{f: f, still: make(chan struct{}), ended: make(chan struct{}), known: map[*object]int{}, handles: map[uint64]*handle{}}
}

// enter begins an operation; it fails if the mount has ended. cancel and tid are as with rest.
func (m *mount) enter(cancel <-chan struct{}, tid uint32) bool {
	select {
	case <-m.still:
		// Pages that the kernel writes back are nobody's: no signal is told of them, and a process that waits for one of them could not be killed.
		if tid != 0 {
			m.hang(nil, nil, cancel, tid)
		}
		return false
	default:
		return m.enterNow()
	}
}

// enterNow is enter for what nobody waits for.
func (m *mount) enterNow() bool {
	m.life.RLock()
	if m.dead {
		m.life.RUnlock()
		return false
	}
	return true
}

func (m *mount) exit() { m.life.RUnlock() }

// end lets operations come to their end and takes all effect from those that come later.
func (m *mount) end() {
	m.once.Do(func() {
		m.calm.Do(func() { close(m.still) })
		close(m.ended) // lets go whoever waits
		m.life.Lock()
		m.dead = true
		m.life.Unlock()
		m.f.mu.Lock()
		for _, h := range m.handles {
			m.f.letGo(h.o)
		}
		for o := range m.known {
			m.f.forget(o, 1)
		}
		m.handles, m.known = nil, nil
		m.f.mu.Unlock()
		if m.leave != nil {
			m.leave()
		}
	})
}

// tell notes that the kernel was told of the object. FS.mu is held.
func (m *mount) tell(o *object) {
	if m.known[o]++; m.known[o] == 1 {
		o.refs++
	}
}

// forgotten notes that the kernel forgot n of the times that it was told of the object. FS.mu is held.
func (m *mount) forgotten(o *object, n uint64) {
	if left := m.known[o] - int(n); left > 0 {
		m.known[o] = left
		return
	}
	if m.known[o] > 0 {
		delete(m.known, o)
		m.f.forget(o, 1)
	}
}

// hold opens a handle. FS.mu is held.
func (m *mount) hold(o *object) uint64 {
	m.next++
	m.handles[m.next] = &handle{o: o}
	o.refs++
	o.mu.Lock()
	o.users++
	o.mu.Unlock()
	return m.next
}

// drop closes a handle. FS.mu is held.
func (m *mount) drop(number uint64) {
	if h := m.handles[number]; h != nil {
		delete(m.handles, number)
		m.f.letGo(h.o)
	}
}

// letGo is the end of a handle. FS.mu is held.
func (f *FS) letGo(o *object) {
	o.mu.Lock()
	if o.users--; o.users == 0 && o.file != nil {
		o.file.Close()
		o.file = nil
	}
	o.mu.Unlock()
	f.forget(o, 1)
}

// pollEach is how often it is looked whether a process that waits for a delayed operation is being killed, once something has interrupted it.
const pollEach = 5 * time.Millisecond

// rest makes an operation take so long, or as long as its rule is in force. It is false if the process must not be kept waiting: the mount has ended, or the process is
// being killed. Its thread has the id tid; cancel is closed when any signal reaches it.
func (m *mount) rest(long time.Duration, r *Ruling, cancel <-chan struct{}, tid uint32) bool {
	var over <-chan time.Time
	var gone <-chan struct{}
	if r != nil {
		long, gone = long+r.rule.Delay, r.gone
	}
	switch {
	case r != nil && r.rule.Hang:
	case long > 0:
		t := time.NewTimer(long)
		defer t.Stop()
		over = t.C
	default:
		return true
	}
	return m.hang(over, gone, cancel, tid)
}

// hang waits for over or gone, until the power goes; it is false if the process must not be kept waiting.
func (m *mount) hang(over <-chan time.Time, gone, cancel <-chan struct{}, tid uint32) bool {
	still := m.still
	var poll <-chan time.Time
	for {
		select {
		case <-over:
			return true
		case <-gone:
			return true
		case <-still:
			still, over, gone = nil, nil, nil
		case <-m.ended:
			return false
		case <-cancel:
			cancel = nil
			t := time.NewTicker(pollEach)
			defer t.Stop()
			poll = t.C
			if dying(tid) {
				return false
			}
		case <-poll:
			if dying(tid) {
				return false
			}
		}
	}
}

// dying tells whether SIGKILL waits for the thread. Any other signal lets it wait on, as a disk does.
func dying(tid uint32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return tid != 0
	}
	const kill = 1 << 8
	for line := range strings.Lines(string(text)) {
		for _, key := range []string{"SigPnd:", "ShdPnd:"} {
			if rest, ok := strings.CutPrefix(line, key); ok {
				var set uint64
				fmt.Sscanf(rest, "%x", &set)
				if set&kill != 0 {
					return true
				}
			}
		}
	}
	return false
}
