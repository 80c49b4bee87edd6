package reference

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

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
		return nil, fmt.Errorf("reference: no room for %d ports below the range for outgoing connections, which begins at %d", n, low)
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
		return nil, fmt.Errorf("reference: only %d of %d ports are free from %d to %d", len(ports), n, first, last)
	}
	return ports, nil
}
