package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"ackproof/systems"
)

// How long probes wait. "silent" is what counts as no answer: a healthy node on loopback answers within milliseconds, so the bound is far
// above noise and still short against the faults.
const (
	beforeWait = 500 * time.Millisecond
	silentWait = 200 * time.Millisecond
	afterWait  = 4 * time.Second
	retryEach  = 20 * time.Millisecond
)

// way dials a node.
type way func(ctx context.Context) (net.Conn, error)

// directly is the harness's own way to a node, on which no fault acts.
func directly(n systems.Node) way {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", n.Addr())
	}
}

// over is the way of one party to another.
func over(n Network, dialer, acceptor Party) way {
	return func(ctx context.Context) (net.Conn, error) { return n.Dial(ctx, dialer, acceptor) }
}

// linked tells whether the two have a link that the lane is about, and on is the way over it.
func linked(n Network, l Lane) bool {
	if l.Plane == "" {
		return slices.Contains(n.Dialers(l.Acceptor), l.Dialer)
	}
	p, ok := n.(Planes)
	return ok && p.Linked(l.Dialer, l.Acceptor, l.Plane)
}

func on(n Network, l Lane) way {
	p, ok := n.(Planes)
	if l.Plane == "" || !ok {
		return over(n, l.Dialer, l.Acceptor)
	}
	return func(ctx context.Context) (net.Conn, error) { return p.DialPlane(ctx, l.Dialer, l.Acceptor, l.Plane) }
}

// tellsPlanes is an error if the cut is of a plane and the network has none.
func tellsPlanes(b Backend, c Cut) error {
	if _, ok := b.Network().(Planes); c.Plane != "" && !ok {
		return fmt.Errorf("the network of %s does not tell the planes of connections apart, and the cut is of the %s plane", b.Name(), c.Plane)
	}
	return nil
}

// sideBySide probes all links at the same time.
func sideBySide[L any](links []L, do func(L)) {
	var all sync.WaitGroup
	for _, link := range links {
		all.Go(func() { do(link) })
	}
	all.Wait()
}

// ask dials and pings once, within wait for each and no longer than ctx lasts. It returns the connection open if it was answered.
func ask(ctx context.Context, ping systems.Prober, dial way, wait time.Duration) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c, err := dial(dialing)
	if err != nil {
		return nil, err
	}
	if err := pingOn(ctx, ping, c, wait); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// pingOn pings once over an open connection. The end of ctx counts as the end of the wait.
func pingOn(ctx context.Context, ping systems.Prober, c net.Conn, wait time.Duration) error {
	c.SetDeadline(time.Now().Add(wait))
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	return ping.Ping(c)
}

// answers asks until an answer comes or ctx ends, and says how long it took.
func answers(ctx context.Context, ping systems.Prober, dial way) (time.Duration, error) {
	began := time.Now()
	for {
		c, err := ask(ctx, ping, dial, beforeWait)
		if err == nil {
			c.Close()
			return time.Since(began), nil
		}
		if !sleep(ctx, retryEach) {
			return 0, fmt.Errorf("no answer for %v: %w", time.Since(began).Round(time.Millisecond), err)
		}
	}
}

// silent: the error of a probe says that no answer came in time, and not that the connection broke.
func silent(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// silentDial is silent for a probe that had to dial first: a dial without answer counts as well.
func silentDial(err error) bool {
	var n net.Error
	return silent(err) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// processState is the state letter of a process: R running, S sleeping, T stopped, Z ended and not yet waited for; "" if it is not there. It
// comes from /proc, or from ps where there is no /proc.
func processState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return ""
		}
		out, _ := exec.Command("ps", "-o", "state=", "-p", fmt.Sprint(pid)).Output()
		return strings.TrimSpace(string(out[:min(1, len(out))]))
	}
	// The second field is the name in brackets, which may hold anything; the state is behind the last bracket.
	rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(rest) == 0 {
		return ""
	}
	return rest[0]
}
