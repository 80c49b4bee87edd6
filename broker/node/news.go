package node

import "sync"

// news wakes everybody who waits for something to change. Take the channel first, then look at the state, then wait.
type news struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait gives a channel that the next broadcast closes.
func (s *news) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *news) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// poke puts a wake-up into a channel that holds one.
func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
