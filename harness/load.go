package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ackproof/histories"
	"ackproof/workloads/log/franz"
	"ackproof/workloads/sockets"
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
	for {
		select {
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-certain:
			return
		case <-tick.C:
			r.Observer.Tick(time.Since(begin), fmt.Sprintf("%d records acknowledged, %d of %d faults begun", r.counters.Total(), r.begun.Load(), len(r.schedule.Faults)))
		}
	}
}

func (r *run) startClients(hard context.Context, stop chan struct{}, all *sync.WaitGroup) error {
	for i, w := range r.workload.Workers() {
		links, _, err := r.links(w.Client)
		if err != nil {
			return infra("open the links of the clients", err)
		}
		all.Go(func() {
			r.guard("the "+w.Name, func() { w.Run(sockets.New(hard, stop, r.began, r.Options.Seed, uint64(i)), links) })
		})
	}
	_, links, err := r.links(r.Options.Clients)
	if err != nil {
		return infra("open the links of the clients", err)
	}
	p := franz.Producer{Config: r.config, Workload: r.workload, Journal: r.journal, Counters: r.counters, Links: links}
	all.Go(func() {
		r.guard("the franz-go producer", func() {
			if err := p.Run(hard, stop, r.now); err != nil {
				r.died("the franz-go producer", err)
			}
		})
	})
	return nil
}
