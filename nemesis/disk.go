package nemesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ackproof/nemesis/lossy"
	"ackproof/systems"
)

// Disk is the disk under one node. *lossy.FS is one.
type Disk interface {
	// PowerLoss takes what was not flushed, in the way that is asked for, and ends what processes see of the disk. The node should be down.
	PowerLoss(lossy.Loss, *rand.Rand) (lossy.Lost, error)
	// Freeze is the moment at which the power goes; PowerLoss must follow.
	Freeze()
	// Attached counts the processes of the node that were given the disk so far.
	Attached() int
	// Wipe takes the files that one of the patterns matches off the disk, for good, and tells how many. The node must be down.
	Wipe(globs ...string) (files int, err error)
	// Replace puts a new disk in the place of this one, which holds what lies in the node's data folder outside of what processes see. The node must be down.
	Replace() error
	// Flip turns a bit over of a file that the pattern matches, and tells which. The node must be down.
	Flip(glob string, pick *rand.Rand) (what string, err error)
	// Cut takes the end off a file that the pattern matches, for good, and tells which. The node must be down.
	Cut(glob string, pick *rand.Rand) (what string, err error)
	// Add makes operations go wrong until the ruling ends; the seed is for rules with a chance.
	Add(r lossy.Rule, seed uint64) *lossy.Ruling
}

// Disks is a back end whose nodes have disks that can lose their power and fail. All else is as the back end within has it.
type Disks struct {
	Backend
	o lossy.Options

	mu    sync.Mutex
	disks map[int]*lossy.FS // by node
}

// WithDisks lays the data of all nodes of the back end on such disks.
func WithDisks(within Backend, o lossy.Options) *Disks {
	return &Disks{Backend: within, o: o, disks: map[int]*lossy.FS{}}
}

// Name implements Backend.
func (d *Disks) Name() string { return d.Backend.Name() }

// DataDir implements systems.Host.
func (d *Disks) DataDir(node int, want string) (string, error) {
	dir, err := d.Backend.DataDir(node, want)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.disks[node] != nil {
		return dir, nil
	}
	f, err := lossy.New(dir, dir+".disk", d.o)
	if err != nil {
		return "", err
	}
	d.disks[node] = f
	return dir, nil
}

// Start implements systems.Host.
func (d *Disks) Start(node int, cmd *exec.Cmd) error {
	if f := d.disk(node); f != nil {
		if err := f.Attach(); err != nil {
			return err
		}
	}
	return d.Backend.Start(node, cmd)
}

func (d *Disks) disk(node int) *lossy.FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disks[node]
}

// Machine implements Backend.
func (d *Disks) Machine(n systems.Node) Machine {
	m := d.Backend.Machine(n)
	if f := d.disk(n.ID()); f != nil {
		m.Disk = f
	}
	return m
}

// Can implements Backend.
func (d *Disks) Can(k Kind) (ok bool, how string) {
	if !k.ofDisk() {
		return d.Backend.Can(k)
	}
	if ok, how = lossy.Available(); !ok {
		return false, how
	}
	return true, "the node's data lies on a file system of the harness (" + how + ")"
}

// Close implements Backend.
func (d *Disks) Close() error {
	err := d.Backend.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(d.disks)) {
		err = errors.Join(err, d.disks[n].Close())
	}
	return err
}

// ofDisk tells kinds that take a hold on the node's disk.
func (k Kind) ofDisk() bool {
	return slices.Contains([]Kind{PowerLoss, DiskWipe, BitFlip, Truncate, DiskError, FlushError, FlushLie, DiskFull, DiskSlow}, k)
}

// UsesDisk tells whether any of the kinds takes a hold on the disks of nodes (WithDisks).
func UsesDisk(kinds []Kind) bool { return slices.ContainsFunc(kinds, Kind.ofDisk) }

// badDisk makes operations go wrong. Its effect: some did.
type badDisk struct {
	wound
	rulings []*lossy.Ruling // by target; nil without a disk
	proofs  []string
	hits    []int
}

func (b *badDisk) prepare(context.Context) {
	b.rulings, b.proofs, b.hits = make([]*lossy.Ruling, len(b.nodes)), make([]string, len(b.nodes)), make([]int, len(b.nodes))
}

// rule is what the fault's kind does. What fails once mostly fails in the log of the fault's partition, where that is known: elsewhere it is something else that is put to the test.
// A flush lies of nothing but that log: a control plane that is lied to has promised nothing that a contract of logs could judge.
func (b *badDisk) rule() (lossy.Rule, error) {
	keeper, known := b.x.r.System.(systems.Keeper)
	r := lossy.Rule{Ops: []lossy.Op{lossy.Write, lossy.Flush}, Err: syscall.EIO, Count: 1}
	switch b.l.fault.Kind {
	case DiskFull:
		return lossy.Rule{Ops: lossy.Growing(), Err: syscall.ENOSPC}, nil
	case DiskSlow:
		return lossy.Rule{Ops: []lossy.Op{lossy.Flush, lossy.FlushDir}, Delay: ms(b.l.fault.AmountMS)}, nil
	case FlushLie:
		if !known {
			return r, errNoKeeper(FlushLie)
		}
		return lossy.Rule{Ops: []lossy.Op{lossy.Flush}, Lie: true, Glob: keeper.LogGlob(max(0, b.l.partition))}, nil
	case FlushError:
		r = lossy.Rule{Ops: []lossy.Op{lossy.Flush}, Err: syscall.EIO, Drop: true, Count: 1}
	}
	if known && b.l.partition >= 0 && b.l.pick.IntN(4) > 0 {
		r.Glob = keeper.LogGlob(b.l.partition)
	}
	return r, nil
}

func (b *badDisk) strike() error {
	rule, err := b.rule()
	if err != nil {
		return err
	}
	seed := b.l.pick.Uint64()
	return b.each(func(i int, n systems.Node) error {
		disk := b.x.r.Backend.Machine(n).Disk
		if disk == nil {
			return fmt.Errorf("%s of %s: the back end has no hold on its disk", b.l.fault.Kind, n.Name())
		}
		b.rulings[i] = disk.Add(rule, seed)
		return nil
	})
}

func (b *badDisk) during(context.Context) {}

func (b *badDisk) heal(context.Context) error {
	return b.each(func(i int, n systems.Node) error {
		if b.rulings[i] != nil {
			b.rulings[i].End()
			hits := b.rulings[i].Hits()
			b.hits[i] = hits
			b.proofs[i] = fmt.Sprintf("%s: %s", n.Name(), b.did(hits))
		}
		return nil
	})
}

func (b *badDisk) did(hits int) string {
	switch kind := b.l.fault.Kind; {
	case hits == 0:
		return "nothing met the fault"
	case kind == DiskSlow:
		return fmt.Sprintf("%d flushes took %d ms longer", hits, b.l.fault.AmountMS)
	case kind == DiskFull:
		return fmt.Sprintf("%d operations were told that the disk is full", hits)
	case kind == FlushError:
		return fmt.Sprintf("%d flush failed, and what it should have kept is not kept", hits)
	case kind == FlushLie:
		return fmt.Sprintf("%d flushes said that all is well, and kept nothing", hits)
	default:
		return fmt.Sprintf("%d operation failed", hits)
	}
}

// after starts a node again that has ended of it: that is what a broker may do whose disk fails.
func (b *badDisk) after(ctx context.Context) {
	b.each(func(i int, n systems.Node) error {
		if b.rulings[i] == nil || b.rulings[i].Hits() == 0 {
			return nil
		}
		for end := time.Now().Add(endWait); time.Now().Before(end); sleep(ctx, silentWait/4) {
			alive, reason := n.Alive()
			if alive || reason == nil {
				continue
			}
			b.proofs[i] += fmt.Sprintf(", it ended of it (%v)", reason)
			if err := n.Start(ctx); err != nil {
				b.proofs[i] += ": " + err.Error()
			} else {
				b.proofs[i] += " and was started again"
			}
			return nil
		}
		return nil
	})
}

// endWait is how long a node whose disk was bad is watched for its end.
const endWait = 500 * time.Millisecond

func (b *badDisk) verdict() (bool, string) {
	return slices.ContainsFunc(b.hits, func(n int) bool { return n > 0 }), strings.Join(slices.DeleteFunc(slices.Clone(b.proofs), func(s string) bool { return s == "" }), "; ")
}
