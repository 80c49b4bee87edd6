package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/sim/disk"
)

// FailEverywhere lets each change fail in turn. The handle must be dead; what recovery finds then is durable.
func (t *Tally) FailEverywhere(run Run, r *rand.Rand) {
	after, changes, err := run.whole()
	if err != nil {
		t.find("%v", err)
		return
	}
	for k := range changes {
		for _, fault := range []disk.Fault{{Err: files.ErrIO}, {Err: files.ErrNoSpace, Keep: 1 + r.IntN(300)}, {Err: files.ErrIO, Drop: true}} {
			if t.done() {
				return
			}
			p := &player{disk: disk.New()}
			p.disk.Fault = func(op disk.Op) disk.Fault {
				if op.Number == k && op.Kind != disk.Read {
					return fault
				}
				return disk.Fault{}
			}
			before, next, s, err := p.play(run, after)
			where := fmt.Sprintf("change %d fails with %+v, in %s", k, fault, nameOf(s))
			t.Faults++
			if err == nil || !errors.Is(err, fault.Err) {
				t.find("%s: the log says %v", where, err)
				continue
			}
			if p.log != nil && s.name != "open" && !strings.HasPrefix(s.name, "close") {
				if err := p.log.Append(nil, false); !errors.Is(err, storage.ErrDead) {
					t.find("%s: the handle is not dead: %v", where, err)
				}
				_ = p.log.Close(false)
			}
			t.verify(p.disk, before, next, s, !fault.Drop, where)
		}
	}
}

// FlipBits plays the run, opens the log once more, which puts the recovery point at its end, and flips single bits: each must be found, and said.
func (t *Tally) FlipBits(run Run, r *rand.Rand, bits int) {
	p := &player{disk: disk.New()}
	if _, _, s, err := p.play(run, nil); err != nil {
		t.find("%s: %v", s.name, err)
		return
	}
	if err := p.open(); err != nil {
		t.find("open: %v", err)
		return
	}
	p.disk.Kill()
	var logs []string
	for _, file := range p.disk.Files() {
		if strings.HasSuffix(file, ".log") {
			logs = append(logs, file)
		}
	}
	if len(logs) == 0 {
		return // a run of nothing but a reset
	}
	for range bits {
		if t.done() {
			return
		}
		d := p.disk.Clone()
		file := logs[r.IntN(len(logs))]
		raw, err := files.ReadAll(d.Mount(), file)
		at, bit := r.Int64N(max(int64(len(raw)), 1)), uint(r.IntN(8))
		if err == nil {
			err = d.Flip(file, at, bit)
		}
		if err != nil {
			t.find("flip: %v", err)
			return
		}
		t.Flips++
		if got, _, err := look(d); !errors.Is(err, storage.ErrDamaged) {
			t.find("bit %d of byte %d of %s flipped: %+v, %v", bit, at, file, got.bounds, err)
		}
	}
}
