package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// partition holds lanes of the mesh. Its effect is proven link by link with a probe of its own connection: it was answered before, was
// not while the lanes were held although its bytes arrived at the gate, and was after the release. A link that is held one way only must
// also have let the other way's bytes through.
type partition struct {
	wound
	network Network
	lanes   []Lane
	links   []*linkProbe
	past    []string // pairs of nodes that are to be cut off from each other and are not on this network
}

// linkProbe is the proof of one link.
type linkProbe struct {
	dialer, acceptor Party
	lane             Lane // forward
	forward, back    bool // which lanes are held
	conn             net.Conn
	start            [2]Count // of the forward and the back lane, when the hold began

	before, quiet, after, blind bool // blind: another fault hides the acceptor at the end
	held, passed                int64
	problem                     string
}

func newPartition(w wound) *partition {
	network := w.x.r.Backend.Network()
	p := &partition{wound: w, network: network}
	p.lanes = w.lanes(network)
	found := map[[2]Party]*linkProbe{}
	for _, lane := range p.lanes {
		key := [2]Party{lane.Dialer, lane.Acceptor}
		link := found[key]
		if link == nil {
			if !linked(network, lane) {
				p.missing(lane)
				continue // these two have never had anything to say to each other
			}
			link = &linkProbe{dialer: lane.Dialer, acceptor: lane.Acceptor, lane: Lane{Dialer: lane.Dialer, Acceptor: lane.Acceptor, Plane: lane.Plane}}
			found[key] = link
			p.links = append(p.links, link)
		}
		if lane.Back {
			link.back = true
		} else {
			link.forward = true
		}
	}
	return p
}

// missing looks at two that have no link in this direction. Two nodes without any know each other's real addresses: what is held here does not concern them.
func (p *partition) missing(l Lane) {
	if l.Dialer.Client || slices.Contains(p.network.Dialers(l.Dialer), l.Acceptor) || l.Plane != "" && slices.Contains(p.network.Dialers(l.Acceptor), l.Dialer) {
		return
	}
	if pair := fmt.Sprintf("%v and %v", l.Dialer, l.Acceptor); !slices.Contains(p.past, pair) {
		p.past = append(p.past, pair)
	}
}

// heldAtAll tells whether bytes on the link wait now, in either direction, whatever held them.
func heldAtAll(n Network, l Lane) bool {
	whole := l
	whole.Plane = ""
	return n.Held(l) || n.Held(l.reverse()) || n.Held(whole) || n.Held(whole.reverse())
}

func (p *partition) count(link *linkProbe) [2]Count {
	m := p.network
	return [2]Count{m.Count(link.lane), m.Count(link.lane.reverse())}
}

func (p *partition) prepare(ctx context.Context) {
	if p.prober == nil {
		return
	}
	sideBySide(p.links, func(link *linkProbe) {
		c, err := ask(ctx, p.prober, on(p.network, link.lane), beforeWait)
		if err != nil {
			link.problem = "did not answer before the cut: " + err.Error()
			return
		}
		link.conn, link.before = c, true
	})
}

func (p *partition) strike() error {
	if err := tellsPlanes(p.x.r.Backend, p.l.fault.Cut); err != nil {
		return err
	}
	if len(p.lanes) == 0 {
		return errors.New("the cut holds no lane: nobody is on the other side")
	}
	for _, link := range p.links {
		link.start = p.count(link)
	}
	p.network.Hold(p.lanes...)
	return nil
}

func (p *partition) during(ctx context.Context) {
	sideBySide(p.links, func(link *linkProbe) {
		if !link.before {
			return
		}
		began := time.Now()
		err := pingOn(ctx, p.prober, link.conn, silentWait)
		now := p.count(link)
		for way, isHeld := range [2]bool{link.forward, link.back} {
			if isHeld {
				link.held += now[way].Held - link.start[way].Held
			} else {
				link.passed += now[way].Passed - link.start[way].Passed
			}
		}
		switch {
		case err == nil:
			link.problem = "answered through the cut"
		case !silent(err):
			link.problem = "broke instead of falling silent: " + err.Error()
		case link.held == 0:
			link.problem = fmt.Sprintf("was silent for %d ms, but not a byte waited at the gate", time.Since(began).Milliseconds())
		case !link.forward && link.passed == 0:
			link.problem = "let nothing through in the direction that is not cut"
		default:
			link.quiet = true
		}
	})
}

func (p *partition) heal(context.Context) error {
	if p.l.fault.Cut.Reset {
		for _, link := range p.links {
			p.network.Reset(link.dialer, link.acceptor)
		}
	}
	p.network.Release(p.lanes...)
	return nil
}

func (p *partition) after(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, afterWait)
	defer cancel()
	sideBySide(p.links, func(link *linkProbe) {
		if link.conn != nil {
			link.conn.Close()
		}
		if !link.quiet {
			return
		}
		_, err := answers(ctx, p.prober, on(p.network, link.lane))
		switch {
		case err == nil:
			link.after = true
		case p.x.hurtByOthers(p.l, link.acceptor.ID) || heldAtAll(p.network, link.lane):
			link.blind = true
		default:
			link.problem = "did not answer after the heal, so its silence may have had another cause: " + err.Error()
		}
	})
}

// verdict: no link may have answered through the cut, and at least one must have been proven; those that another fault had silenced already
// prove nothing either way.
func (p *partition) verdict() (bool, string) {
	if p.prober == nil {
		return false, noProber
	}
	if len(p.past) > 0 {
		return false, fmt.Sprintf("%s: not cut: %s reach each other past this network, whose nodes would have to be told other addresses (a back end whose network is transparent, such as the sandbox, can)",
			p.l.fault.Cut.Shape, strings.Join(p.past, ", "))
	}
	var proven, blind, leaks int
	var held int64
	var problems []string
	for _, link := range p.links {
		held += link.held
		if link.problem != "" {
			problems = append(problems, fmt.Sprintf("%v→%v %s", link.dialer, link.acceptor, link.problem))
		}
		switch {
		case link.quiet && (link.after || link.blind):
			proven++
		case link.before && !link.quiet:
			leaks++
		}
		if link.blind {
			blind++
		}
	}
	proof := fmt.Sprintf("%s: %d of %d links answered before, were silent with %d bytes held, and answered after", p.l.fault.Cut.Shape, proven, len(p.links), held)
	if blind > 0 {
		proof += fmt.Sprintf(" (%d of them could not be seen after: another fault held the node)", blind)
	}
	return proven > 0 && leaks == 0, join("; ", proof, strings.Join(problems, "; "))
}
