package nemesis

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ackproof/nemesis/vdso"
	"ackproof/systems"
)

// stops makes processes stand still for several faults at once: a process goes on when everybody who stopped it has let go.
type stops struct {
	mu   sync.Mutex
	held map[int]int // holds by pid: a node that was started anew stands still for nobody
}

// hold stops the node's process. release lets go, once; for a process that is gone it does nothing.
func (s *stops) hold(n systems.Node) (release func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := n.PID()
	if pid == 0 {
		return nil, fmt.Errorf("stop %s: it is down", n.Name())
	}
	if s.held[pid] == 0 {
		if err := n.Pause(); err != nil {
			return nil, err
		}
	}
	if s.held == nil {
		s.held = map[int]int{}
	}
	s.held[pid]++
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[pid]--; s.held[pid] > 0 {
			return nil
		}
		delete(s.held, pid)
		if n.PID() != pid {
			return nil
		}
		return n.Resume()
	}), nil
}

// whileStill does something to the node's process, all of whose threads have to stand still and none at the clock.
func (s *stops) whileStill(n systems.Node, do func() error) error {
	const tries = 50
	var err error
	for range tries {
		release, stopErr := s.hold(n)
		if stopErr != nil {
			return stopErr
		}
		end := time.Now().Add(silentWait) // the signal reaches thread after thread
		for err = do(); errors.Is(err, vdso.ErrRuns) && time.Now().Before(end); err = do() {
			time.Sleep(200 * time.Microsecond)
		}
		if err = errors.Join(err, release()); !errors.Is(err, vdso.ErrInside) {
			return err
		}
	}
	return err
}

// gone: the error says that the process ended meanwhile.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrProcessDone) }
