//go:build linux

package sandbox

import (
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"ackproof/systems/process"
)

// What a run pays for the sandbox once: another process in namespaces, three nodes' places in it, and the end of all that. The bare process, beside it, is what
// the program itself costs.
func BenchmarkSetUpAndTearDown(b *testing.B) {
	for _, c := range []struct{ name, role string }{{"sandbox", "brief"}, {"process", "nothing"}} {
		b.Run(c.name, func(b *testing.B) {
			if unavailable != nil {
				b.Skip("there is no sandbox here: ", unavailable)
			}
			for b.Loop() {
				cmd := exec.Command("/proc/self/exe")
				cmd.Env = append(withoutMarker(os.Environ()), roleEnv+"="+c.role)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
	b.Run("places of 3 nodes", func(b *testing.B) {
		if unavailable != nil {
			b.Skip("there is no sandbox here: ", unavailable)
		}
		for b.Loop() {
			s, err := New()
			if err != nil {
				b.Fatal(err)
			}
			for id := 1; id <= 3; id++ {
				if _, err := s.Address(id, 0); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A stream that is echoed, and a round trip of one byte, through the switch and over bare loopback.
func BenchmarkTraffic(b *testing.B) {
	w := newWorld(b, 2)
	bare, err := process.New(process.Spec{ID: 3, Addr: "127.0.0.1:9092", Dir: b.TempDir(), Argv: []string{"/proc/self/exe"},
		Env: []string{roleEnv + "=server", argEnv + "=127.0.0.1:9092"}})
	if err != nil {
		b.Fatal(err)
	}
	if err := bare.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer bare.Stop()
	w.up(b, bare)
	for _, over := range []struct {
		name string
		dial func() net.Conn
	}{
		{"switch", func() net.Conn { return w.dial(b, n1, n2) }},
		{"loopback", func() net.Conn {
			c, err := net.Dial("tcp", bare.Addr())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			return c
		}},
	} {
		b.Run("round trip/"+over.name, func(b *testing.B) {
			c, buf := over.dial(), make([]byte, 1)
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("stream/"+over.name, func(b *testing.B) {
			c := over.dial()
			sent, got := make([]byte, 256<<10), make([]byte, 256<<10)
			b.SetBytes(int64(len(sent)))
			writing := make(chan error, 1)
			for b.Loop() {
				go func() {
					_, err := c.Write(sent)
					writing <- err
				}()
				if _, err := io.ReadFull(c, got); err != nil {
					b.Fatal(err)
				}
				if err := <-writing; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
