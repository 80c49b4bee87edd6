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
	lost []string
}

func (p *powerLoss) prepare(ctx context.Context) {
	p.kill.prepare(ctx)
	p.lost = make([]string, len(p.nodes))
}

// powerTries bounds how often the power is taken anew from a node that something else starts meanwhile.
const powerTries = 5

func (p *powerLoss) strike() error {
	// Each node has a way of its own to lose what it loses, from its own stream: nodes are struck side by side.
	losses, seeds := make([]lossy.Loss, len(p.nodes)), make([]uint64, len(p.nodes))
	for i := range p.nodes {
		losses[i], seeds[i] = drawLoss(p.l.pick), p.l.pick.Uint64()
		if p.l.fault.Loss != "" {
			losses[i] = p.l.fault.Loss
		}
	}
	for _, n := range p.nodes { // at one moment, which killing them is not
		if disk := p.x.r.Backend.Machine(n).Disk; disk != nil {
			disk.Freeze()
		}
	}
	return errors.Join(p.kill.strike(), p.each(func(i int, n systems.Node) error {
		disk := p.x.r.Backend.Machine(n).Disk
		if disk == nil {
			return fmt.Errorf("power loss of %s: the back end has no hold on its disk", n.Name())
		}
		pick := rand.New(rand.NewPCG(seeds[i], 0x706f776572))
		var lost lossy.Lost
		for range powerTries {
			lives := disk.Attached()
			if err := n.Kill(); err != nil { // it is down already, unless another fault has started it since
				return fmt.Errorf("kill %s: %w", n.Name(), err)
			}
			more, err := disk.PowerLoss(losses[i], pick)
			if err != nil {
				return fmt.Errorf("power loss of %s: %w", n.Name(), err)
			}
			lost = lost.Add(more)
			if disk.Attached() == lives {
				break
			}
		}
		p.lost[i] = lost.String()
		return nil
	}))
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
