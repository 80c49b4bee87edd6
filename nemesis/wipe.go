package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"

	"ackproof/systems"
)

// damage is a kill after which something of the node's logs is not what it was, whether it was flushed or not: gone (disk-wipe), or with a bit turned over (bit-flip). It is healed by a restart.
type damage struct {
	kill
	done  []string // by target
	spoil []bool
}

func (d *damage) prepare(ctx context.Context) {
	d.kill.prepare(ctx)
	d.done, d.spoil = make([]string, len(d.nodes)), make([]bool, len(d.nodes))
}

func (d *damage) strike() error {
	k, ok := d.x.r.System.(systems.Keeper)
	if !ok {
		return fmt.Errorf("%s: the system does not say where its nodes keep their logs (systems.Keeper)", d.l.fault.Kind)
	}
	var logs []string
	for p := range d.l.seen.Partitions {
		logs = append(logs, k.LogGlob(int32(p)))
	}
	flipped := k.LogGlob(max(0, d.l.partition))
	if err := d.kill.strike(); err != nil {
		return err
	}
	pick := d.l.pick.Uint64()
	return d.each(func(i int, n systems.Node) error {
		return d.whileDown(n, func(disk Disk) (err error) {
			if d.l.fault.Kind == BitFlip {
				d.done[i], err = disk.Flip(flipped, rand.New(rand.NewPCG(pick, uint64(i))))
				d.done[i] = "turned over: " + d.done[i]
			} else {
				var files int
				files, err = disk.Wipe(logs...)
				d.done[i] = fmt.Sprintf("%d files of its logs wiped", files)
			}
			d.spoil[i] = err == nil
			return err
		})
	})
}

func (d *damage) verdict() (bool, string) {
	effective, proof := false, ""
	for i := range d.proofs {
		effective = effective || d.gone[i] && d.spoil[i]
		d.proofs[i] = join(", ", d.proofs[i], d.done[i])
	}
	_, proof = d.kill.verdict()
	return effective, proof
}
