package process

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestPortsAreNoneThatTheKernelGivesAway(t *testing.T) {
	low, high := ephemeralDefault, 65535
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
			t.Fatal(err)
		}
	}
	ports, err := freePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ports {
		if p >= low && p <= high {
			t.Errorf("port %d is in the range %d to %d", p, low, high)
		}
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 50 {
		t.Errorf("%d different ports, expected 50", len(ports))
	}
}

func TestAddressesStayAndDiffer(t *testing.T) {
	h, seen := NewLoopback(), map[string]bool{}
	for node := 1; node <= 5; node++ {
		for nth := range 3 {
			first, err := h.Address(node, nth)
			if err != nil {
				t.Fatal(err)
			}
			again, err := h.Address(node, nth)
			if err != nil || again != first || seen[first] {
				t.Errorf("n%d, %d: %s, then %s, %v; given to somebody else before: %v", node, nth, first, again, err, seen[first])
			}
			seen[first] = true
		}
	}
}
