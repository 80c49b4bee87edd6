package nemesis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Shaper is a network that carries packets one by one and can treat them badly. Not every network is one.
type Shaper interface {
	// Shape treats every packet on the lanes as the treatment says from now on, beside whatever else treats it, until end is called. Packets that still wait then
	// go on at once. end tells what became of the packets; it may be called twice.
	Shape(t Treatment, lanes ...Lane) (end func() Treated)
}

// Treatment is what becomes of packets. Shares are from 0 to 1, of packets drawn with the seed.
type Treatment struct {
	Seed      uint64
	Delay     time.Duration // every packet is late by that much
	Jitter    time.Duration // and by up to that much more; packets keep their order
	Lose      float64
	Duplicate float64
	Reorder   float64 // packets are held back for a moment, while others overtake them
	Corrupt   float64 // a bit is flipped behind the IP header; the receiver's checksum tells, so the packet is lost to it
	Rate      int64   // bytes per second of each lane, 0: as many as come
	Clog      bool    // every packet waits for the end
	Shuffle   bool    // and then they go on in any order
}

// Treated counts packets, by what became of them.
type Treated struct {
	Seen, Late, Lost, Duplicated, Reordered, Corrupted int64
	Waited                                             int64 // for the rate, or in the clog
}

// Of packets.
const (
	percent = 100.0
	// pingEach is the pause between two pings while packets are treated badly.
	pingEach = 20 * time.Millisecond
	// lateEnough is how much of the delay a round trip must show: timers of the switch and of the prober are not the same.
	lateEnough = 0.9
	// patience is how long an answer may take on a bad link: TCP sends again after 200 ms, then after twice as long.
	patience = 3 * time.Second
)

// OnPackets tells kinds that treat the packets of links badly. Their Cut says which links, and in which direction.
func (k Kind) OnPackets() bool {
	return slices.Contains([]Kind{PacketDelay, PacketLoss, PacketDuplicate, PacketReorder, PacketCorrupt, LinkRate, LinkClog}, k)
}

// ofShare tells kinds that hit Percent of the packets.
func (k Kind) ofShare() bool {
	return k == PacketLoss || k == PacketDuplicate || k == PacketReorder || k == PacketCorrupt
}

// onLinks tells kinds that act between nodes: the nodes themselves are not hurt.
func (k Kind) onLinks() bool { return k == Partition || k.OnPackets() }

// treatment is what the fault does to packets.
func (f Fault) treatment(seed uint64) Treatment {
	t, share := Treatment{Seed: seed}, float64(f.Percent)/percent
	switch f.Kind {
	case PacketDelay:
		t.Delay, t.Jitter = ms(f.AmountMS), ms(f.AmountMS)/2
	case PacketLoss:
		t.Lose = share
	case PacketDuplicate:
		t.Duplicate = share
	case PacketReorder:
		t.Reorder = share
	case PacketCorrupt:
		t.Corrupt = share
	case LinkRate:
		t.Rate = f.BytesPerSecond
	case LinkClog:
		t.Clog, t.Shuffle = true, f.Shuffle
	}
	return t
}

// badPackets treats the packets of links badly. Its effect is proven from both sides: the switch counts what it did to packets, and a probe on a connection of its own
// over each link must have been answered before, must be answered again afterwards on the same connection, and feels the delay or the clog in between.
type badPackets struct {
	wound
	network Network
	lanes   []Lane
	links   []*badLink
	end     func() Treated
	treated Treated
}

// badLink is the probe of one link.
type badLink struct {
	dialer, acceptor Party
	lane             Lane // forward
	ways             int  // how many of its two directions are treated
	conn             net.Conn

	before, during time.Duration // the fastest round trip
	answered       int           // pings while it lasted
	silent, after  bool
	problem        string
}

func newBadPackets(w wound) *badPackets {
	network := w.x.r.Backend.Network()
	b := &badPackets{wound: w, network: network}
	b.lanes = w.lanes(network)
	found := map[[2]Party]*badLink{}
	for _, lane := range b.lanes {
		key := [2]Party{lane.Dialer, lane.Acceptor}
		if found[key] == nil {
			if !linked(network, lane) {
				continue
			}
			found[key] = &badLink{dialer: lane.Dialer, acceptor: lane.Acceptor, lane: Lane{Dialer: lane.Dialer, Acceptor: lane.Acceptor, Plane: lane.Plane}}
			b.links = append(b.links, found[key])
		}
		found[key].ways++
	}
	return b
}

func (b *badPackets) prepare(ctx context.Context) {
	if b.prober == nil {
		return
	}
	sideBySide(b.links, func(link *badLink) {
		c, err := ask(ctx, b.prober, on(b.network, link.lane), beforeWait)
		if err != nil {
			link.problem = "did not answer before: " + err.Error()
			return
		}
		for range 3 {
			began := time.Now()
			if err := pingOn(ctx, b.prober, c, beforeWait); err != nil {
				link.problem = "did not answer before: " + err.Error()
				c.Close()
				return
			}
			if took := time.Since(began); link.before == 0 || took < link.before {
				link.before = took
			}
		}
		link.conn = c
	})
}

func (b *badPackets) strike() error {
	if err := tellsPlanes(b.x.r.Backend, b.l.fault.Cut); err != nil {
		return err
	}
	shaper, ok := b.network.(Shaper)
	if !ok {
		return fmt.Errorf("the network of %s does not carry packets", b.x.r.Backend.Name())
	}
	b.end = shaper.Shape(b.l.fault.treatment(b.l.pick.Uint64()), b.lanes...)
	return nil
}

func (b *badPackets) during(ctx context.Context) {
	sideBySide(b.links, func(link *badLink) {
		if link.conn == nil {
			return
		}
		if b.l.fault.Kind == LinkClog {
			err := pingOn(context.WithoutCancel(ctx), b.prober, link.conn, silentWait)
			switch {
			case err == nil:
				link.problem = "answered through the clog"
			case !silent(err):
				link.problem = "broke instead of falling silent: " + err.Error()
			default:
				link.silent = true
			}
			return
		}
		for first := true; first || sleep(ctx, pingEach); first = false {
			began := time.Now()
			if err := pingOn(context.WithoutCancel(ctx), b.prober, link.conn, patience); err != nil {
				link.problem = "did not answer: " + err.Error()
				return
			}
			link.answered++
			if took := time.Since(began); link.during == 0 || took < link.during {
				link.during = took
			}
		}
	})
}

func (b *badPackets) heal(context.Context) error {
	if b.end != nil {
		b.treated = b.end()
	}
	return nil
}

func (b *badPackets) after(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, afterWait)
	defer cancel()
	sideBySide(b.links, func(link *badLink) {
		if link.conn == nil {
			return
		}
		defer link.conn.Close()
		if link.silent { // the answer that waited in the clog comes first, and only then that of a new connection would mean anything
			link.conn.SetReadDeadline(time.Now().Add(afterWait))
			if _, err := link.conn.Read(make([]byte, 1)); err != nil {
				link.problem = "the answer that waited did not come after the clog: " + err.Error()
				return
			}
		}
		if _, err := answers(ctx, b.prober, on(b.network, link.lane)); err != nil {
			link.problem = "did not answer afterwards: " + err.Error()
			return
		}
		link.after = true
	})
}

func (b *badPackets) verdict() (bool, string) {
	if b.prober == nil {
		return false, noProber
	}
	f, t := b.l.fault, b.treated
	var did string
	happened := false
	switch f.Kind {
	case PacketDelay:
		did, happened = fmt.Sprintf("%d packets were late by %d ms or more", t.Late, f.AmountMS), t.Late > 0
	case PacketLoss:
		did, happened = fmt.Sprintf("%d of %d packets were lost", t.Lost, t.Seen), t.Lost > 0
	case PacketDuplicate:
		did, happened = fmt.Sprintf("%d of %d packets came twice", t.Duplicated, t.Seen), t.Duplicated > 0
	case PacketReorder:
		did, happened = fmt.Sprintf("%d of %d packets were overtaken", t.Reordered, t.Seen), t.Reordered > 0
	case PacketCorrupt:
		did, happened = fmt.Sprintf("a bit was flipped in %d of %d packets", t.Corrupted, t.Seen), t.Corrupted > 0
	case LinkRate:
		did, happened = fmt.Sprintf("%d of %d packets waited for their turn at %d bytes per second", t.Waited, t.Seen, f.BytesPerSecond), t.Waited > 0
	case LinkClog:
		did, happened = fmt.Sprintf("%d packets waited for the end of the clog", t.Waited), t.Waited > 0
	}
	proven, contradicted := 0, 0
	var problems []string
	for _, link := range b.links {
		if link.problem != "" {
			problems = append(problems, fmt.Sprintf("%v→%v %s", link.dialer, link.acceptor, link.problem))
		}
		switch {
		case link.conn == nil || !link.after:
		case f.Kind == PacketDelay && float64(link.during) < lateEnough*float64(link.ways)*float64(ms(f.AmountMS)):
			contradicted++
			problems = append(problems, fmt.Sprintf("%v→%v went round in %v, expected %d ms at least", link.dialer, link.acceptor, link.during, int64(link.ways)*f.AmountMS))
		case f.Kind == LinkClog && !link.silent:
			contradicted++
		default:
			proven++
		}
	}
	how := "answered before, during and after"
	switch f.Kind {
	case LinkClog:
		how = "answered before, were silent, and had their answer afterwards"
	case PacketDelay:
		how = "answered before, late by that much, and after"
	}
	return happened && proven > 0 && contradicted == 0, join("; ", fmt.Sprintf("%s; %d of %d links %s", did, proven, len(b.links), how), strings.Join(problems, "; "))
}
