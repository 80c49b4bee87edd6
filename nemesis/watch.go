package nemesis

import (
	"context"
	"slices"
	"sync"
	"time"

	"ackproof/systems"
)

// How often the roles are asked for: seldom while nobody waits for a state, often while a fault does. Sequences that must hit a new leader
// within one round of replication depend on the second.
const (
	watchIdle  = 100 * time.Millisecond
	watchEager = 15 * time.Millisecond
	// rolesTimeout bounds one question; nodes that are paused or cut off do not answer.
	rolesTimeout = 500 * time.Millisecond
)

// watcher follows the roles during a run.
type watcher struct {
	system systems.System
	hurry  chan struct{} // a waiter wants the next look at once

	mu      sync.Mutex
	eager   int
	known   bool
	roles   systems.Roles
	leader  []int // the last known leader of each partition, 0 if there never was one
	joined  []int // whoever entered the in-sync set last, 0 unknown
	changes int
	news    chan struct{} // closed and replaced at each look
}

func newWatcher(s systems.System) *watcher {
	return &watcher{system: s, hurry: make(chan struct{}, 1), news: make(chan struct{})}
}

func (w *watcher) run(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-w.hurry:
		}
		asking, cancel := context.WithTimeout(ctx, rolesTimeout)
		roles, err := w.system.Roles(asking)
		cancel()
		pause := w.look(roles, err)
		t.Reset(pause)
	}
}

// look takes in one answer and says when to look again.
func (w *watcher) look(roles systems.Roles, err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.take(roles)
		close(w.news)
		w.news = make(chan struct{})
	}
	if w.eager > 0 {
		return watchEager
	}
	return watchIdle
}

func (w *watcher) take(roles systems.Roles) {
	for len(w.leader) < len(roles.Partitions) {
		w.leader, w.joined = append(w.leader, 0), append(w.joined, 0)
	}
	for p, now := range roles.Partitions {
		if now.Leader != 0 {
			if before := w.leader[p]; before != 0 && before != now.Leader {
				w.changes++
			}
			w.leader[p] = now.Leader
		}
		if w.known && p < len(w.roles.Partitions) {
			for _, n := range now.ISR {
				if !slices.Contains(w.roles.Partitions[p].ISR, n) {
					w.joined[p] = n
				}
			}
		}
	}
	w.roles, w.known = roles, true
}

// now gives the latest view, whether there is one, and a channel that is closed at the next.
func (w *watcher) now() (systems.Roles, bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roles, w.known, w.news
}

// lastJoined is whoever entered the in-sync set of the partition last while the run was watched, 0 if nobody.
func (w *watcher) lastJoined(p int32) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if int(p) >= len(w.joined) || p < 0 {
		return 0
	}
	return w.joined[p]
}

func (w *watcher) leaderChanges() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}

// until waits for a view that satisfies ok and returns it; false when the time is up, or ctx ends.
func (w *watcher) until(ctx context.Context, limit time.Duration, ok func(systems.Roles) bool) (systems.Roles, bool) {
	w.mu.Lock()
	w.eager++
	w.mu.Unlock()
	select {
	case w.hurry <- struct{}{}:
	default:
	}
	defer func() {
		w.mu.Lock()
		w.eager--
		w.mu.Unlock()
	}()
	end := time.NewTimer(limit)
	defer end.Stop()
	poll := time.NewTicker(watchEager) // ok may also look at other things than roles
	defer poll.Stop()
	for {
		roles, known, news := w.now()
		if known && ok(roles) {
			return roles, true
		}
		select {
		case <-news:
		case <-poll.C:
		case <-end.C:
			return roles, false
		case <-ctx.Done():
			return roles, false
		}
	}
}
