package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"ackproof/nemesis/lossy"
	"ackproof/systems"
)

// powerLoss is a kill after which the disk has lost what was not flushed, healed by a restart. Where nothing was unflushed it was a kill and no more, and its proof says so.
type powerLoss struct {
	kill
	lost []string // what came of it, by target
}

func (p *powerLoss) prepare(ctx context.Context) {
	p.kill.prepare(ctx)
	p.lost = make([]string, len(p.nodes))
}

// downTries bounds how often a node is killed anew that something else starts meanwhile.
const downTries = 5

func (p *powerLoss) strike() error {
	// All in one way: what every copy loses is what shows.
	loss, seed := drawLoss(p.l.pick), p.l.pick.Uint64()
	if p.l.fault.Loss != "" {
		loss = p.l.fault.Loss
	}
	for _, n := range p.nodes { // at one moment, which killing them is not
		if disk := p.x.r.Backend.Machine(n).Disk; disk != nil {
			disk.Freeze()
		}
	}
	return errors.Join(p.kill.strike(), p.each(func(i int, n systems.Node) error {
		pick, lost := rand.New(rand.NewPCG(seed, uint64(i))), lossy.Lost{}
		err := p.whileDown(n, func(d Disk) error {
			more, err := d.PowerLoss(loss, pick)
			lost = lost.Add(more)
			return err
		})
		p.lost[i] = lost.String()
		return err
	}))
}

// whileDown does something to the disk of a node that is down, anew if something else has started the node meanwhile.
func (w *wound) whileDown(n systems.Node, do func(Disk) error) error {
	disk := w.x.r.Backend.Machine(n).Disk
	if disk == nil {
		return fmt.Errorf("%s of %s: the back end has no hold on its disk", w.l.fault.Kind, n.Name())
	}
	for range downTries {
		lives := disk.Attached()
		if err := n.Kill(); err != nil { // it is down already, unless another fault has started it since
			return fmt.Errorf("kill %s: %w", n.Name(), err)
		}
		if err := do(disk); err != nil {
			return fmt.Errorf("%s of %s: %w", w.l.fault.Kind, n.Name(), err)
		}
		if disk.Attached() == lives {
			return nil
		}
	}
	return fmt.Errorf("%s of %s: something else started it, time and again", w.l.fault.Kind, n.Name())
}

// drawLoss draws a way to lose power: losing everything that was not flushed is the one that shows most, the others try recovery.
func drawLoss(pick *rand.Rand) lossy.Loss {
	switch n := pick.IntN(10); {
	case n < 5:
		return lossy.LoseAll
	case n < 7:
		return lossy.SomeLoss
	case n < 9:
		return lossy.TornTail
	}
	return lossy.LoseNames
}

func (p *powerLoss) verdict() (bool, string) {
	for i := range p.proofs {
		p.proofs[i] = join(", ", p.proofs[i], p.lost[i])
	}
	return p.kill.verdict()
}
