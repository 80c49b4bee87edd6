package process

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
)

// Loopback is the plainest host: all nodes are processes of this machine, listen on ports of loopback and keep their data where the run has its folder.
// It implements systems.Host.
type Loopback struct {
	mu    sync.Mutex
	ports map[[2]int]int // by node and number of the port
}

// NewLoopback returns a host without nodes.
func NewLoopback() *Loopback { return &Loopback{ports: map[[2]int]int{}} }

// Address implements systems.Host: a port of loopback that stays the node's own.
func (h *Loopback) Address(node, nth int) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]int{node, nth}
	for h.ports[key] == 0 {
		found, err := freePorts(1)
		if err != nil {
			return "", fmt.Errorf("find an address for n%d: %w", node, err)
		}
		if !slices.Contains(slices.Collect(maps.Values(h.ports)), found[0]) {
			h.ports[key] = found[0]
		}
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(h.ports[key])), nil
}

// DataDir implements systems.Host: the folder that the run wants.
func (h *Loopback) DataDir(_ int, want string) (string, error) {
	if err := os.MkdirAll(want, 0o755); err != nil {
		return "", fmt.Errorf("make the data folder: %w", err)
	}
	return want, nil
}

// Start implements systems.Host.
func (h *Loopback) Start(_ int, cmd *exec.Cmd) error { return cmd.Start() }

const (
	lowestPort = 10000
	// ephemeralDefault is where ports for outgoing connections begin if the system does not say: IANA's range begins above, Linux's here.
	ephemeralDefault = 32768
)

// freePorts finds ports on loopback that nobody listens on and that the kernel never gives to an outgoing connection, so that a node which
// restarts in the middle of a run finds its port free.
func freePorts(n int) ([]int, error) {
	low := ephemeralDefault
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var high int
		if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
			low = ephemeralDefault
		}
	}
	first, last := lowestPort, low-1
	if last-first < 2000 { // a machine with a widened range leaves no room below it
		first, last = 1024, low-1
	}
	if last-first < n {
		return nil, fmt.Errorf("no room for %d ports below the range for outgoing connections, which begins at %d", n, low)
	}
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	size := last - first + 1
	start := rand.IntN(size) // runs side by side seldom ask for the same ones
	for i := 0; i < size && len(ports) < n; i++ {
		port := first + (start+i)%size
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held = append(held, l) // until all are found, so that no two are the same
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("only %d of %d ports are free from %d to %d", len(ports), n, first, last)
	}
	return ports, nil
}
