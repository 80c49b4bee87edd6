package campaign

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"strings"
	"sync"

	"ackproof/sim"
)

// Pool runs cases in worker processes, one case at a time in each: a world has its process for itself (see sim.Run), and a crash of one takes no other along.
type Pool struct {
	Command []string // starts a worker: a process that calls Serve on its standard input and output. Empty: cases run in this process
	Size    int      // how many workers; at least 1
}

// Each runs the cases and hands each summary to done, one at a time, in the order in which they end. It stops early when done says false or ctx ends. The
// error is that of a worker that cannot be started; a worker that dies is a Failed summary.
func (p Pool) Each(ctx context.Context, cases iter.Seq[sim.Case], done func(Summary) (more bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next, stop := iter.Pull(cases)
	defer stop()
	var mu sync.Mutex
	take := func() (sim.Case, bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return sim.Case{}, false
		}
		return next()
	}
	give := func(s Summary) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil && !done(s) {
			cancel()
		}
	}
	if len(p.Command) == 0 {
		for c, ok := take(); ok; c, ok = take() {
			give(Execute(c))
		}
		return nil
	}
	var workers sync.WaitGroup
	errs := make([]error, max(p.Size, 1))
	for i := range errs {
		workers.Go(func() {
			if errs[i] = p.work(ctx, take, give); errs[i] != nil {
				cancel()
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// work feeds one worker, and starts another when it dies.
func (p Pool) work(ctx context.Context, take func() (sim.Case, bool), give func(Summary)) error {
	var w *worker
	defer func() {
		if w != nil {
			w.end()
		}
	}()
	for c, ok := take(); ok; c, ok = take() {
		if w == nil {
			var err error
			if w, err = p.start(ctx); err != nil {
				return fmt.Errorf("start a worker of the simulator (%s): %w", strings.Join(p.Command, " "), err)
			}
		}
		s, err := w.run(c)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			s = Summary{Case: c, Verdict: "undecided", Failed: fmt.Sprintf("the worker died: %v\n%s", err, w.end())}
			w = nil
		}
		give(s)
	}
	return nil
}

// worker is one process.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

func (p Pool) start(ctx context.Context) (*worker, error) {
	w := &worker{cmd: exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)}
	w.cmd.Stderr = &w.stderr
	w.cmd.Env = append(w.cmd.Environ(), "GOMAXPROCS=1", "GOGC=400") // the worlds are what runs side by side, and they are small
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	return w, w.cmd.Start()
}

func (w *worker) run(c sim.Case) (s Summary, err error) {
	if _, err := w.in.Write(append(encode(c), '\n')); err != nil {
		return s, err
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(line, &s)
}

// end lets the worker go and gives what it said on its standard error.
func (w *worker) end() string {
	w.in.Close()
	_ = w.cmd.Wait() // how it ended is known already, or of no interest
	return w.stderr.String()
}

// Serve is the life of a worker: a case per line in, a summary per line out, until in ends.
func Serve(in io.Reader, out io.Writer) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c sim.Case
		if err := d.Decode(&c); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a case: %w", err)
		}
		if err := e.Encode(Execute(c)); err != nil {
			return fmt.Errorf("write a summary: %w", err)
		}
	}
}
