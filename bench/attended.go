package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// stallTimeout ends a phase in which nothing moves any more: franz-go itself waits for ever for the answer to an idempotent record.
	stallTimeout = 30 * time.Second
	// reportEach is how often progress is told.
	reportEach = 500 * time.Millisecond
)

// attended runs the workers that start adds to the group, tells their progress, and gives up when done stands still for stallTimeout. It returns how long the
// workers took. The first worker's error, a stall and the caller's cancellation all cancel the workers' context with their cause.
func attended(ctx context.Context, done func() int64, progress func(done int64), start func(context.Context, *errgroup.Group)) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, workers := errgroup.WithContext(ctx)
	begin := time.Now()
	start(workers, running)
	finished := make(chan error, 1)
	var elapsed time.Duration
	go func() {
		err := running.Wait()
		elapsed = time.Since(begin)
		finished <- err
	}()

	tick := time.NewTicker(reportEach)
	defer tick.Stop()
	last, moved := int64(0), begin
	for {
		select {
		case err := <-finished:
			progress(done())
			return elapsed, err
		case now := <-tick.C:
			n := done()
			progress(n)
			if n != last {
				last, moved = n, now
			} else if now.Sub(moved) > stallTimeout {
				cancel(fmt.Errorf("nothing moved for %v", stallTimeout))
			}
		}
	}
}
