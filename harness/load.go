package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ackproof/histories"
	"ackproof/workloads/log/franz"
)

// load lets clients work while the nemesis does, and ends with every client gone and every fault healed.
func (r *run) load(ctx context.Context) error {
	begin := time.Now()
	length := time.Duration(r.Options.Time)
	r.Observer.Phase("load", length)
	r.mark("load")

	hard, breakAll := context.WithCancel(ctx)
	defer breakAll()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	if err := r.startClients(hard, stop, &clients); err != nil {
		return err
	}
	faulty, endFaults := context.WithCancel(ctx)
	defer endFaults()
	var others sync.WaitGroup
	others.Go(func() { r.guard("the nemesis", func() { r.faults = r.runner.Run(faulty, r.schedule) }) })
	r.startWatch(ctx)

	r.wait(ctx, length, r.certain.reached)
	endFaults() // the runner heals what lasts
	close(stop)
	finished := make(chan struct{})
	go func() { clients.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
	case <-time.After(2*r.config.Deadline + r.config.RequestTimeout):
		r.died("a client", "it did not stop in time")
	}
	breakAll()
	others.Wait()
	<-finished
	r.seconds.Load = time.Since(begin).Seconds()
	return nil
}

// mark puts the beginning of a phase into the journal.
func (r *run) mark(phase string) {
	r.journal.Mark(histories.Event{Kind: histories.Phase, Note: phase})
}

// wait lets the load go on for its time, or until a violation is certain and nobody wants more.
func (r *run) wait(ctx context.Context, length time.Duration, certain <-chan struct{}) {
	if r.Options.KeepGoing {
		certain = nil
	}
	begin := time.Now()
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var speed pace
	for {
		select {
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-certain:
			return
		case <-tick.C:
			since, acked := time.Since(begin), r.counters.Total()
			r.Observer.Tick(since, fmt.Sprintf("%d acked, %.0f/s, %d of %d faults", acked, speed.at(since, acked), r.begun.Load(), len(r.schedule.Faults)))
		}
	}
}

// pace is the rate over about the last second. The zero value is ready.
type pace struct {
	seen []paceMark // the oldest first
}

type paceMark struct {
	at    time.Duration
	total int64
}

// at takes the total so far and gives the rate per second.
func (p *pace) at(now time.Duration, total int64) float64 {
	p.seen = append(p.seen, paceMark{now, total})
	for len(p.seen) > 2 && p.seen[1].at <= now-time.Second {
		p.seen = p.seen[1:]
	}
	first := p.seen[0]
	if now <= first.at {
		return 0
	}
	return float64(total-first.total) / (now - first.at).Seconds()
}

func (r *run) startClients(hard context.Context, stop chan struct{}, all *sync.WaitGroup) error {
	workers := r.workload.Workers
	if r.groups != nil {
		workers = r.groups.Workers
	}
	for i, w := range workers() {
		links, _, err := r.links(w.Client)
		if err != nil {
			return infra("open the links of the clients", err)
		}
		all.Go(func() {
			r.guard("the "+w.Name, func() { w.Run(r.env(w.Client, hard, stop, uint64(i)), links) })
		})
	}
	if r.groups != nil {
		return nil // its members are clients enough
	}
	_, links, err := r.links(r.Options.Clients)
	if err != nil {
		return infra("open the links of the clients", err)
	}
	p := franz.Producer{Config: r.config, Workload: r.workload, Journal: r.journal, Counters: r.counters, Links: links,
		Dialer: r.backend.Network().ClientDialer(r.Options.Clients)}
	all.Go(func() {
		r.guard("the franz-go producer", func() {
			if err := p.Run(hard, stop, r.now); err != nil {
				r.died("the franz-go producer", err)
			}
		})
	})
	return nil
}
