package nemesis

import (
	"slices"
	"sync"
)

// Links are who talks to whom in a run: the parties that asked a network for each other's address, and what they were told. The zero value has none.
type Links struct {
	mu sync.Mutex
	at map[link]string
}

// link is a target as one party dials it.
type link struct {
	dialer, acceptor Party
	target           string
}

// Add notes that the dialer reaches the acceptor's target at that address.
func (l *Links) Add(dialer, acceptor Party, target, at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[link]string{}
	}
	l.at[link{dialer, acceptor, target}] = at
}

// Clients are the numbers of all clients that have a link, in rising order.
func (l *Links) Clients() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int
	for k := range l.at {
		if k.dialer.Client {
			ids = append(ids, k.dialer.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Dialers are all parties that have a link to the acceptor: nodes first, each in rising order.
func (l *Links) Dialers(acceptor Party) []Party {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Party
	for k := range l.at {
		if k.acceptor == acceptor {
			out = append(out, k.dialer)
		}
	}
	slices.SortFunc(out, func(a, b Party) int {
		if a.Client != b.Client {
			if b.Client {
				return -1
			}
			return 1
		}
		return a.ID - b.ID
	})
	return slices.Compact(out)
}

// Address is where the dialer reaches the acceptor, the lowest of several; "" if they have no link.
func (l *Links) Address(dialer, acceptor Party) string {
	return l.AddressOf(dialer, acceptor, func(string) bool { return true })
}

// AddressOf is Address, of targets that satisfy ok.
func (l *Links) AddressOf(dialer, acceptor Party, ok func(target string) bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	best := ""
	for k, at := range l.at {
		if k.dialer == dialer && k.acceptor == acceptor && ok(k.target) && (best == "" || at < best) {
			best = at
		}
	}
	return best
}
