package node

import (
	"sync"
	"time"

	"ackproof/broker/core/host"
)

// lateNews ends the waits of fetches that have nothing to bring but a newer high watermark, with one timer for all of a node.
type lateNews struct {
	mu      sync.Mutex
	waiting []*fetch
}

// add has the fetch answered after the pause, unless it has been by then.
func (l *lateNews) add(f *fetch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, f)
	if len(l.waiting) == 1 {
		time.AfterFunc(host.NewsPause, l.tell)
	}
}

func (l *lateNews) tell() {
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, f := range waiting {
		f.late.Store(true)
		f.look(false)
	}
}
