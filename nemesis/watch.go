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
	hurry  chan struct{}                          // a waiter wants the next look at once
	told   func(asked time.Time, r systems.Roles) // of every look

	mu      sync.Mutex
	eager   int
	known   bool
	roles   systems.Roles
	asked   time.Time // when that view was asked for
	leader  []int     // the last known leader of each partition, 0 if there never was one
	joined  []int     // whoever entered the in-sync set last, 0 unknown
	changes int
	news    chan struct{} // closed and replaced at each look
}

func newWatcher(s systems.System, told func(time.Time, systems.Roles)) *watcher {
	return &watcher{system: s, told: told, hurry: make(chan struct{}, 1), news: make(chan struct{})}
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
		asked := time.Now()
		roles, err := w.system.Roles(asking)
		cancel()
		t.Reset(w.look(asked, roles, err))
	}
}

// look takes in one answer and says when to look again.
func (w *watcher) look(asked time.Time, roles systems.Roles, err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.told(asked, roles)
		w.take(roles)
		w.asked = asked
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

// now gives the latest view, when it was asked for, and a channel that is closed at the next.
func (w *watcher) now() (systems.Roles, time.Time, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roles, w.asked, w.news
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

// until waits for a view that was asked for after since and satisfies ok; false when the time is up, or ctx ends. Older views do not count: when all nodes
// are down, the last one says that all is well.
func (w *watcher) until(ctx context.Context, since time.Time, limit time.Duration, ok func(systems.Roles) bool) bool {
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
		roles, asked, news := w.now()
		if asked.After(since) && ok(roles) {
			return true
		}
		select {
		case <-news:
		case <-poll.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
