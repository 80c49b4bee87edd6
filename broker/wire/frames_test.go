package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFramesComeAgainWhenNobodyHoldsThem(t *testing.T) {
	p := &FramePool{Budget: 1 << 20}
	f := p.get(100_000)
	first := &f.buf[0]
	f.Retain()
	f.Release()
	if g := p.get(100_000); &g.buf[0] == first {
		t.Fatal("memory was given out while somebody held it")
	}
	f.Release()
	if g := p.get(40_000); &g.buf[0] == first {
		t.Error("more than twice the memory that is needed was given out")
	}
	if g := p.get(60_000); &g.buf[0] != first {
		t.Error("memory that nobody holds was not used again")
	}
}

func TestFrameMisuseIsNoticed(t *testing.T) {
	for name, misuse := range map[string]func(*Frame){
		"released twice":      func(f *Frame) { f.Release() },
		"held after its last": func(f *Frame) { f.Retain() },
	} {
		f := (&FramePool{}).get(1 << 20)
		f.Release()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse(f)
		}()
	}
	var nobody *Frame
	nobody.Retain()
	nobody.Release()
}

func TestPoison(t *testing.T) {
	p := &FramePool{Budget: 1 << 20, Poison: true}
	f := p.get(20_000)
	view := f.buf[:20_000]
	f.Release()
	if !bytes.Equal(view, bytes.Repeat([]byte{poison}, len(view))) {
		t.Error("memory that was let go of still holds what was there")
	}
	if g := p.get(20_000); &g.buf[0] == &view[0] {
		t.Error("poisoned memory was used again")
	}
}

// Whatever comes and goes: no memory has two owners, what lies about is within the budget, and a buffer is large enough but not by much.
func TestFramePoolBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &FramePool{Budget: rapid.IntRange(0, 4<<20).Draw(t, "budget")}
		var held []*Frame
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				size := rapid.IntRange(pooledFrom, 2<<20).Draw(t, "size")
				f := p.get(size)
				if len(f.buf) < size || len(f.buf) > 2*(size+size/stepsPerDouble+stepsPerDouble) {
					t.Fatalf("a buffer of %d bytes for %d", len(f.buf), size)
				}
				if slices.Contains(held, f) {
					t.Fatal("memory was given out twice")
				}
				held = append(held, f)
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				held[i].Release()
				held = slices.Delete(held, i, i+1)
			},
			"": func(t *rapid.T) {
				kept := 0
				for size, list := range p.free {
					kept += size * len(list)
				}
				if kept != p.kept || kept > p.Budget {
					t.Fatalf("%d bytes lie about, counted are %d, the budget is %d", kept, p.kept, p.Budget)
				}
			},
		})
	})
}

// Only large requests to append get counted memory, and none that is larger than a stranger is trusted with.
func TestWhichFramesAreHeld(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	frame := func(key int16, size int) []byte {
		raw := binary.BigEndian.AppendUint32(nil, uint32(size))
		raw = binary.BigEndian.AppendUint16(raw, uint16(key))
		return append(raw, bytes.Repeat([]byte{7}, size-2)...)
	}
	type sent struct {
		key  int16
		size int
		held bool
	}
	all := []sent{{0, 100, false}, {0, pooledFrom, true}, {1, pooledFrom, false}, {0, firstTrustBytes, true}, {0, firstTrustBytes + 1, false}, {0, firstTrustBytes + 1, true}}
	go func() {
		for _, s := range all {
			client.Write(frame(s.key, s.size))
		}
	}()
	frames := NewFrameReader(server, DefaultMaxFrameBytes, 0)
	for _, s := range all {
		if err := frames.Await(); err != nil {
			t.Fatal(err)
		}
		got, held, err := frames.nextHeld(&FramePool{Budget: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if (held != nil) != s.held || !bytes.Equal(got, frame(s.key, s.size)[4:]) {
			t.Errorf("api key %d, %d bytes: held %t, expected %t, or other bytes", s.key, s.size, held != nil, s.held)
		}
		held.Release()
	}
}
