package node

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is a growing pause with jitter, so that nodes do not try in step.
type backoff struct{ next time.Duration }

// pause gives the next pause: between half and the whole of it, doubling up to retryAtMost.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, retryAtFirst), retryAtMost)
	return b.next/2 + rand.N(b.next/2)
}

func (b *backoff) reset() { b.next = 0 }

// sleep waits, and tells whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
