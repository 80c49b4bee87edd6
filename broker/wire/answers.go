package wire

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// directBytes is the largest answer that is sent by whoever made it known. A larger one, or one that the socket does not take at once, is sent by a goroutine of its own.
const directBytes = 64 << 10

// underWay is a request whose answer has not been sent.
type underWay struct {
	pending     Pending
	correlation int32
	key         int16
	known       bool // its Wait does not block, or may block nobody but a goroutine of its own
}

// answers sends the answers of one connection in the order of its requests. There is no goroutine for it: the one that makes an answer known sends it, and those behind it that are known.
type answers struct {
	ctx      context.Context // of the connection
	end      func()          // ends the connection
	conn     net.Conn
	patience time.Duration
	log      *slog.Logger

	mu      sync.Mutex
	moved   sync.Cond // the queue has become shorter, nobody sends any more, or it is over
	queue   []*underWay
	sending bool // somebody sends the first of the queue
	over    bool // the connection ends: nothing is sent any more

	out outgoing // of whoever is sending
}

func newAnswers(ctx context.Context, end func(), conn net.Conn, patience time.Duration, log *slog.Logger) *answers {
	a := &answers{ctx: ctx, end: end, conn: conn, patience: patience, log: log}
	a.moved.L = &a.mu
	return a
}

// add queues a request that has been handled. It blocks while too many are under way.
func (a *answers) add(u *underWay) {
	a.mu.Lock()
	for len(a.queue) >= pipelineDepth && !a.over {
		a.moved.Wait()
	}
	a.queue = append(a.queue, u)
	a.mu.Unlock()
	if p, ok := u.pending.(Prompt); ok {
		p.Then(func() { a.ready(u) })
	} else {
		a.ready(u)
	}
}

// waited tells whether the peer waits for an answer.
func (a *answers) waited() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue) > 0
}

// ready: the answer to u can be sent. It is, unless its turn has not come: then whoever sends the one before it goes on with it. It does not block.
func (a *answers) ready(u *underWay) {
	a.mu.Lock()
	u.known = true
	mine := !a.sending && !a.over && a.queue[0] == u
	a.sending = a.sending || mine
	a.mu.Unlock()
	if mine {
		a.send()
	}
}

// next gives the first request of the queue if its answer is known. If not, nobody sends any more.
func (a *answers) next() *underWay {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || len(a.queue) == 0 || !a.queue[0].known {
		a.sending = false
		a.moved.Broadcast()
		return nil
	}
	return a.queue[0]
}

// send sends what is known, without blocking: what would block goes on in a goroutine.
func (a *answers) send() {
	for u := a.next(); u != nil; u = a.next() {
		if _, prompt := u.pending.(Prompt); !prompt {
			go a.wait(u)
			return
		}
		answer, err := u.pending.Wait(a.ctx)
		if err == nil && answer != nil {
			a.out.set(u.correlation, answer)
			if !a.out.sendNow(a.conn, directBytes) {
				go a.rest(u, answer)
				return
			}
		}
		a.sent(u, answer, err)
	}
}

// wait sends an answer that has to be waited for, and what is known behind it.
func (a *answers) wait(u *underWay) {
	answer, err := u.pending.Wait(a.ctx)
	if err == nil && answer != nil && a.ctx.Err() == nil {
		a.out.set(u.correlation, answer)
		err = a.out.writeTo(a.conn, a.patience)
	}
	a.sent(u, answer, err)
	a.send()
}

// rest sends what the socket has not taken of an answer, and what is known behind it.
func (a *answers) rest(u *underWay, answer any) {
	err := a.out.writeTo(a.conn, a.patience)
	a.sent(u, answer, err)
	a.send()
}

// sent frees the answer and takes its request out of the queue.
func (a *answers) sent(u *underWay, answer any, err error) {
	if f, ok := answer.(*FetchResponse); ok && f != nil {
		f.Release()
	}
	a.out.reset()
	if err != nil && a.ctx.Err() == nil {
		a.log.Debug("connection closed while answering", "api_key", u.key, "error", err)
		a.end()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = a.over || err != nil
	a.queue = slices.Delete(a.queue, 0, 1) // it is short
	a.moved.Broadcast()
}

// finish waits until all answers have been sent, or the connection has ended.
func (a *answers) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 && !a.over {
		a.moved.Wait()
	}
}

// stop makes everybody who waits go on: the connection has ended.
func (a *answers) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.moved.Broadcast()
}

// close frees what has not been sent. The context has ended, and nothing is added any more. Nobody uses the connection after it.
func (a *answers) close() {
	a.stop()
	a.mu.Lock()
	for a.sending {
		a.moved.Wait()
	}
	left := a.queue
	a.queue = nil
	a.mu.Unlock()
	for _, u := range left {
		if answer, _ := u.pending.Wait(a.ctx); answer != nil {
			if f, ok := answer.(*FetchResponse); ok && f != nil {
				f.Release()
			}
		}
	}
}
