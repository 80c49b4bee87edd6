package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"ackproof/model"
)

// lineEvery is how often progress is told where there is no terminal.
const lineEvery = 5 * time.Second

// Progress tells on stderr how a run goes on: a bar on a terminal, a line every five seconds elsewhere, or nothing. It is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer
	quiet bool
	tty   bool
	bar   *progressbar.ProgressBar
	phase string
	last  time.Time
}

// NewProgress writes to out; it shows a bar if out is a terminal.
func NewProgress(out io.Writer, quiet bool) *Progress {
	f, ok := out.(*os.File)
	return &Progress{out: out, quiet: quiet, tty: ok && term.IsTerminal(int(f.Fd()))}
}

// Planned prints what the run will do and how to repeat it, before anything happens.
func (p *Progress) Planned(seed int64, replay string, contract model.Contract, faults int) {
	p.say(fmt.Sprintf("seed %d  (repeat with: %s)\n%sfaults     %s planned", seed, Visible(replay), Contract(contract), number(faults)))
}

// Phase begins a phase that lasts about that long; 0: unknown.
func (p *Progress) Phase(name string, lasts time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endBar()
	p.phase, p.last = name, time.Now()
	switch {
	case p.quiet:
	case p.tty && lasts > 0:
		p.bar = progressbar.NewOptions64(lasts.Milliseconds(),
			progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(fmt.Sprintf("%-6s", name)), progressbar.OptionSetWidth(20),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false))
	default:
		fmt.Fprintln(p.out, name+" …")
	}
}

// Tick tells how far the phase is.
func (p *Progress) Tick(elapsed time.Duration, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.quiet:
	case p.bar != nil:
		p.bar.Describe(shorten(fmt.Sprintf("%-6s %s", p.phase, text), width-30)) // beside the bar and its percentage
		// A bar that cannot be drawn is no reason to stop a run.
		_ = p.bar.Set64(min(elapsed.Milliseconds(), p.bar.GetMax64()-1))
	case !p.tty && time.Since(p.last) >= lineEvery:
		p.last = time.Now()
		fmt.Fprintln(p.out, shorten(fmt.Sprintf("%s %.0f s: %s", p.phase, elapsed.Seconds(), text), width))
	}
}

// Note prints something that must not be missed, unless quiet is asked for. Its first line is wrapped, what follows (the end of a log, say) stays as it is.
func (p *Progress) Note(text string) {
	first, rest, more := strings.Cut(text, "\n")
	indent := first[:len(first)-len(strings.TrimLeft(first, " "))]
	out := wrap(indent, first)
	if more {
		out += Visible(rest)
	}
	p.say(out)
}

func (p *Progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet {
		return
	}
	p.endBar()
	fmt.Fprintln(p.out, strings.TrimRight(text, "\n"))
}

// Done removes the bar.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endBar()
}

func (p *Progress) endBar() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
