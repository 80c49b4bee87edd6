package lossy

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainFile is the model of one file, as simple as can be: two copies of it all.
type plainFile struct {
	now, durable []byte
	dirty, stuck map[int]bool // sectors
	cut          int          // −1: none below the durable size
}

const testSector = 512

func (p *plainFile) sectors(from, to int) (out []int) {
	for s := from / testSector; s*testSector < to; s++ {
		out = append(out, s)
	}
	return out
}

func (p *plainFile) write(b []byte, at int) {
	if len(b) == 0 {
		return
	}
	p.now = append(p.now, make([]byte, max(0, at+len(b)-len(p.now)))...)
	copy(p.now[at:], b)
	for _, s := range p.sectors(at, at+len(b)) {
		p.dirty[s] = true
		delete(p.stuck, s)
	}
}

func (p *plainFile) resize(n int) {
	if n < len(p.durable) && n < len(p.now) && (p.cut < 0 || n < p.cut) {
		p.cut = n
	}
	p.now = slices.Clone(p.now[:min(n, len(p.now))])
	p.now = append(p.now, make([]byte, n-len(p.now))...)
	for _, set := range []map[int]bool{p.dirty, p.stuck} {
		maps.DeleteFunc(set, func(s int, _ bool) bool { return s*testSector >= n })
	}
}

// before is a sector as it was flushed, if the cut has happened, made as long as it must be.
func (p *plainFile) before(s, size int) []byte {
	out := make([]byte, max(0, min(testSector, size-s*testSector)))
	old := p.durable
	if p.cut >= 0 {
		old = old[:min(p.cut, len(old))]
	}
	if s*testSector < len(old) {
		copy(out, old[s*testSector:])
	}
	return out
}

func (p *plainFile) flush() {
	p.durable = p.kept()
	p.dirty, p.cut = map[int]bool{}, -1
}

// kept is what is there if all lasts that can.
func (p *plainFile) kept() []byte {
	out := slices.Clone(p.now)
	for s := range p.stuck {
		copy(out[s*testSector:], p.before(s, len(out)))
	}
	return out
}

func (p *plainFile) drop() {
	maps.Copy(p.stuck, p.dirty)
	p.dirty = map[int]bool{}
}

// bare is a disk of which only the content is of interest, and one file on it.
func bare(t interface {
	Fatal(...any)
	Helper()
}, dir string) (*FS, *object) {
	t.Helper()
	if err := os.MkdirAll(dir+"/seen", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := New(dir+"/seen", dir+"/back", Options{WriteBack: -1})
	if err != nil {
		t.Fatal(err)
	}
	f.taken = true
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.newObject(fileMode | 0o600)
	f.edit(f.root, "file", o)
	return f, o
}

func TestContentFollowsTheModel(t *testing.T) {
	top := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		f, o := bare(t, fmt.Sprintf("%s/%d", top, n))
		defer f.Close()
		p := &plainFile{dirty: map[int]bool{}, stuck: map[int]bool{}, cut: -1}
		all := func() []byte {
			out := make([]byte, 1<<14)
			n, err := f.read(o, out, 0)
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			return out[:n]
		}
		size := rapid.IntRange(0, 4*testSector)
		letter := byte('a')
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			var err error
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2: // append
				letter++
				b := bytes.Repeat([]byte{letter}, size.Draw(t, "length"))
				p.write(b, len(p.now))
				_, err = f.write(o, b, o.size)
			case 3, 4:
				letter++
				at, b := size.Draw(t, "at"), bytes.Repeat([]byte{letter}, size.Draw(t, "length"))
				if len(b) > 0 {
					p.write(b, at)
				}
				_, err = f.write(o, b, int64(at))
			case 5, 6:
				to := size.Draw(t, "to")
				p.resize(to)
				err = f.resize(o, int64(to))
			case 7:
				p.flush()
				f.flushContent(o)
			case 8:
				p.drop()
				err = f.drop(o)
			case 9:
				loss := rapid.SampledFrom(Losses()).Draw(t, "loss")
				if _, err = f.PowerLoss(loss, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "luck"), 1))); err != nil {
					break
				}
				got := all()
				p.judge(t, loss, got)
				p = &plainFile{now: got, durable: slices.Clone(got), dirty: map[int]bool{}, stuck: map[int]bool{}, cut: -1}
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := all(); !bytes.Equal(got, p.now) {
				t.Fatalf("the file reads as %d bytes %s, expected %d bytes %s", len(got), brief(got), len(p.now), brief(p.now))
			}
		}
		if _, err := f.PowerLoss(LoseAll, nil); err != nil {
			t.Fatal(err)
		}
		p.judge(t, LoseAll, all())
	})
}

// judge says whether a loss may leave this of the file.
func (p *plainFile) judge(t *rapid.T, loss Loss, got []byte) {
	bad := func(why string) {
		t.Fatalf("loss %s left %d bytes %s of %d bytes %s, where %d bytes %s were flushed: %s", loss, len(got), brief(got), len(p.now), brief(p.now), len(p.durable),
			brief(p.durable), why)
	}
	switch loss {
	case LoseAll:
		if !bytes.Equal(got, p.durable) {
			bad("not what was flushed")
		}
		return
	case KeepAll, LoseNames:
		if !bytes.Equal(got, p.kept()) {
			bad("not all that could last")
		}
		return
	}
	if bytes.Equal(got, p.durable) {
		return
	}
	least := len(p.durable)
	if p.cut >= 0 {
		least = p.cut
	}
	if len(got) > len(p.now) || len(got) < min(least, len(p.now)) {
		bad("it never had that size")
	}
	for _, s := range p.sectors(0, len(got)) {
		at := s * testSector
		is := got[at:min(at+testSector, len(got))]
		is2 := p.now[at:min(at+testSector, len(got))]
		switch {
		case !p.stuck[s] && bytes.Equal(is, is2):
		case (p.dirty[s] || p.stuck[s]) && bytes.Equal(is, p.before(s, len(got))):
		default:
			bad(fmt.Sprintf("sector %d is neither what it was nor what was flushed", s))
		}
	}
}

// brief shows runs of bytes.
func brief(b []byte) string {
	var out bytes.Buffer
	for i := 0; i < len(b); {
		j := i
		for j < len(b) && b[j] == b[i] {
			j++
		}
		c := string(b[i])
		if b[i] == 0 {
			c = "0"
		}
		fmt.Fprintf(&out, "%s×%d ", c, j-i)
		i = j
	}
	return out.String()
}
