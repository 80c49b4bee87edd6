package wire

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// prompt is a Prompt that is answered by calling know.
type prompt struct {
	answer any
	gaveUp chan error // what Wait was told if it was called too early; may be nil

	mu    sync.Mutex
	known bool
	ready func()
}

func (p *prompt) Then(ready func()) {
	p.mu.Lock()
	known := p.known
	p.ready = ready
	p.mu.Unlock()
	if known {
		ready()
	}
}

func (p *prompt) know() {
	p.mu.Lock()
	p.known = true
	ready := p.ready
	p.mu.Unlock()
	if ready != nil {
		ready()
	}
}

func (p *prompt) Wait(ctx context.Context) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.answer, nil
	}
	p.gaveUp <- ctx.Err()
	return nil, ctx.Err()
}

// TestPromptAnswersInOrder: whatever the order in which answers become known, and whoever makes them known, they are sent in the order of the requests (R7); also among those that are waited for,
// and those that are too large to be sent at once.
func TestPromptAnswersInOrder(t *testing.T) {
	const requests = pipelineDepth
	var all [requests]*prompt
	handled := make(chan struct{})
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		i := q.Correlation
		answer := q.Body.ResponseKind().(*kmsg.MetadataResponse)
		if i%5 == 3 {
			id := strings.Repeat("x", 2*directBytes)
			answer.ClusterID = &id
		}
		all[i] = &prompt{answer: answer}
		if i == requests-1 {
			defer close(handled)
		}
		if i%5 == 1 {
			one := make(chan struct{})
			all[i].ready = func() { close(one) }
			return pendingFunc(func(context.Context) (any, error) { <-one; return answer, nil })
		}
		return all[i]
	})})
	c := dial(t, at)
	for i := range int32(requests) {
		if _, err := c.Write(frame(i, kmsg.NewPtrMetadataRequest())); err != nil {
			t.Fatal(err)
		}
	}
	<-handled
	for i := range all {
		go all[(i*7)%requests].know()
	}
	for i := range int32(requests) {
		if got := correlation(t, c); got != i {
			t.Fatalf("answer %d has correlation id %d", i, got)
		}
	}
}

// TestPromptAnswersToASlowReader: what the socket does not take at once is sent when it does, whole and in order.
func TestPromptAnswersToASlowReader(t *testing.T) {
	id := strings.Repeat("x", directBytes/2)
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		answer := q.Body.ResponseKind().(*kmsg.MetadataResponse)
		answer.ClusterID = &id
		return Ready(answer)
	})})
	c := dial(t, at)
	const requests = 600 // 19 MB
	sent := make(chan error, 1)
	go func() {
		for i := range int32(requests) {
			if _, err := c.Write(frame(i, kmsg.NewPtrMetadataRequest())); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	if err := <-sent; err != nil { // the requests are small: the sockets hold them while nobody reads the answers
		t.Fatal(err)
	}
	for i := range int32(requests) {
		if got := correlation(t, c); got != i {
			t.Fatalf("answer %d has correlation id %d", i, got)
		}
	}
}

// TestPromptIsGivenUp: when the connection ends, whoever was going to answer is told, and may answer later all the same.
func TestPromptIsGivenUp(t *testing.T) {
	pending := make(chan *prompt, 2)
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		p := &prompt{answer: q.Body.ResponseKind(), gaveUp: make(chan error, 1)}
		pending <- p
		return p
	})})
	c := dial(t, at)
	if _, err := c.Write(append(frame(1, kmsg.NewPtrMetadataRequest()), frame(2, kmsg.NewPtrMetadataRequest())...)); err != nil {
		t.Fatal(err)
	}
	first, second := <-pending, <-pending
	c.Close()
	for _, p := range []*prompt{first, second} {
		select {
		case err := <-p.gaveUp:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("given up with %v, expected %v", err, context.Canceled)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the connection has ended, and its answers are still waited for")
		}
		p.know()
	}
}
