package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"

	"ackproof/systems"
)

// damage is a kill after which something of the node's disk is not what it was, whether it was flushed or not: its logs or the whole of it are gone (disk-wipe), a bit of the logs has turned
// over (bit-flip), or a file of them has lost its end (truncate). It is healed by a restart.
type damage struct {
	kill
	done   []string // by target
	spoilt []bool
}

func (d *damage) prepare(ctx context.Context) {
	d.kill.prepare(ctx)
	d.done, d.spoilt = make([]string, len(d.nodes)), make([]bool, len(d.nodes))
}

// spoil is what becomes of the disk of one node, and what to say of it; i is its number among the targets.
type spoil func(i int, n systems.Node, disk Disk) (done string, err error)

// spoiler is what the fault does to each disk. An error: the system does not say what that takes.
func (d *damage) spoiler() (spoil, error) {
	if d.l.fault.Whole {
		f, ok := d.x.r.System.(systems.Formatter)
		if !ok {
			return nil, fmt.Errorf("%s of a whole disk: the system does not say what its nodes need on a new one (systems.Formatter)", d.l.fault.Kind)
		}
		return func(_ int, n systems.Node, disk Disk) (string, error) {
			if err := f.Format(n); err != nil {
				return "", err
			}
			return "in the place of its disk is a new one", disk.Replace()
		}, nil
	}
	k, ok := d.x.r.System.(systems.Keeper)
	if !ok {
		return nil, errNoKeeper(d.l.fault.Kind)
	}
	if d.l.fault.Kind == BitFlip || d.l.fault.Kind == Truncate {
		glob, pick := k.LogGlob(max(0, d.l.partition)), d.l.pick.Uint64()
		return func(i int, _ systems.Node, disk Disk) (string, error) {
			harm, did := disk.Flip, "turned over: "
			if d.l.fault.Kind == Truncate {
				harm, did = disk.Cut, "cut off: "
			}
			what, err := harm(glob, rand.New(rand.NewPCG(pick, uint64(i))))
			return did + what, err
		}, nil
	}
	var logs []string
	for p := range d.l.seen.Partitions {
		logs = append(logs, k.LogGlob(int32(p)))
	}
	return func(_ int, _ systems.Node, disk Disk) (string, error) {
		files, err := disk.Wipe(logs...)
		return fmt.Sprintf("%d files of its logs wiped", files), err
	}, nil
}

func (d *damage) strike() error {
	spoil, err := d.spoiler()
	if err != nil {
		return err
	}
	if err := d.kill.strike(); err != nil {
		return err
	}
	return d.each(func(i int, n systems.Node) error {
		return d.whileDown(n, func(disk Disk) (err error) {
			d.done[i], err = spoil(i, n, disk)
			d.spoilt[i] = err == nil
			return err
		})
	})
}

func (d *damage) verdict() (bool, string) {
	effective, proof := false, ""
	for i := range d.proofs {
		effective = effective || d.gone[i] && d.spoilt[i]
		d.proofs[i] = join(", ", d.proofs[i], d.done[i])
	}
	_, proof = d.kill.verdict()
	return effective, proof
}

// errNoKeeper: faults of the kind take a hold on chosen files.
func errNoKeeper(k Kind) error {
	return fmt.Errorf("%s: the system does not say where its nodes keep their logs (systems.Keeper)", k)
}
