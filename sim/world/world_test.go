package world

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ackproof/nemesis"
)

const ms = time.Millisecond

// log collects what happened, with the moment.
type log struct {
	w     *World
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf("%d "+format, append([]any{l.w.Now() / ms}, args...)...))
}

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.lines, want) {
		t.Errorf("got\n  %s\nexpected\n  %s", strings.Join(l.lines, "\n  "), strings.Join(want, "\n  "))
	}
}

func drain(w *World) { w.Until(func() bool { return false }) }

func TestEventsComeByTimeAndThenByOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(1, nil)
		p := w.NewProcess(1)
		type mark struct {
			at     time.Duration
			number int
		}
		var got, want []mark
		var events []*Event
		for i, at := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(t, "at") {
			m := mark{time.Duration(at), i}
			events = append(events, w.After(m.at, p, func() { got = append(got, m) }))
			want = append(want, m)
		}
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(events)-1), 0, len(events), rapid.ID).Draw(t, "cancelled") {
			w.Cancel(events[i])
			want = slices.DeleteFunc(want, func(m mark) bool { return m.number == i })
		}
		slices.SortStableFunc(want, func(a, b mark) int { return int(a.at - b.at) })
		drain(w)
		if !slices.Equal(got, want) {
			t.Errorf("%v, expected %v", got, want)
		}
	})
}

func TestAPausedProcessMissesNothingAndADeadOneEverything(t *testing.T) {
	w := New(1, nil)
	l := &log{w: w}
	a, b, god := w.NewProcess(1), w.NewProcess(2), w.NewProcess(3)
	w.After(2*ms, a, func() { l.add("a2") })
	w.After(1*ms, a, func() { l.add("a1") })
	gone := w.After(3*ms, a, func() { l.add("cancelled while paused") })
	w.After(2*ms, b, func() { l.add("b2") })
	w.Go(b, func(t *Task) {
		defer l.add("b unwound")
		t.Sleep(time.Hour)
		l.add("never")
	})
	a.Pause()
	w.After(4*ms, god, func() { w.Cancel(gone); b.Kill() })
	w.After(5*ms, god, a.Resume)
	w.After(6*ms, b, func() { l.add("never") })
	w.After(6*ms, a, func() { l.add("a6") })
	drain(w)
	l.want(t, "2 b2", "4 b unwound", "5 a1", "5 a2", "6 a6")
}

func TestTasksWaitForSignalsAndTime(t *testing.T) {
	w := New(1, nil)
	l := &log{w: w}
	p := w.NewProcess(1)
	var s Signal
	for i := range 2 {
		w.Go(p, func(t *Task) {
			l.add("task %d: %t", i, t.Wait(&s, 10*ms)) // the signal comes first
			l.add("task %d: %t", i, t.Wait(&s, 5*ms))  // the time does
		})
	}
	w.After(3*ms, p, s.Broadcast)
	drain(w)
	l.want(t, "3 task 0: true", "3 task 1: true", "8 task 0: false", "8 task 1: false")
	if len(s.waiting) != 0 {
		t.Errorf("the signal still knows %d tasks, which wait no more", len(s.waiting))
	}
}

func TestAPanicOfATaskIsNotSwallowed(t *testing.T) {
	w := New(1, nil)
	w.Go(w.NewProcess(1), func(*Task) { panic("on purpose") })
	defer func() {
		if r := recover(); r != "on purpose" {
			t.Errorf("recovered %v", r)
		}
	}()
	drain(w)
}

func TestTheHashTellsRunsApart(t *testing.T) {
	run := func(at time.Duration, n int64) uint64 {
		w := New(1, nil)
		p := w.NewProcess(1)
		w.After(at, p, func() { w.Note("x", n) })
		drain(w)
		return w.Hash()
	}
	first := run(1, 1)
	if run(1, 1) != first {
		t.Error("the same run has two hashes")
	}
	for _, other := range []uint64{run(2, 1), run(1, 2)} {
		if other == first {
			t.Error("two runs have one hash")
		}
	}
}

// server answers every message with itself, in a process of its own.
func server(w *World, n *Net, id int) *Process {
	p := w.NewProcess(id)
	n.Listen(nemesis.NodeParty(id), p, func(c *Conn) func(any) { return func(m any) { c.Reply(m) } })
	return p
}

func network() (*World, *Net) {
	w := New(7, nil)
	return w, NewNet(w, Delay{Least: 1 * ms, Most: 9 * ms, Slow: 50 * ms, SlowEvery: 3})
}

func TestAConnectionKeepsItsOrderWhateverTheDelays(t *testing.T) {
	w, n := network()
	p := w.NewProcess(1)
	var got []any
	n.Listen(nemesis.NodeParty(1), p, func(*Conn) func(any) { return func(m any) { got = append(got, m) } })
	w.Go(w.NewProcess(2), func(t *Task) {
		var news Signal
		link, err := n.Dial(t, nemesis.ClientParty(1), nemesis.NodeParty(1), time.Second, &news)
		if err != nil {
			panic(err)
		}
		for i := range 50 {
			link.Send(i)
			t.Sleep(ms)
		}
	})
	drain(w)
	want := make([]any, 50)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestHeldLanes(t *testing.T) {
	w, n := network()
	server(w, n, 1)
	god := w.NewProcess(9)
	client, node := nemesis.ClientParty(1), nemesis.NodeParty(1)
	there := nemesis.Lane{Dialer: client, Acceptor: node}
	back := nemesis.Lane{Dialer: client, Acceptor: node, Back: true}
	var events []string
	tell := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	w.Go(w.NewProcess(2), func(t *Task) {
		var news Signal
		link, err := n.Dial(t, client, node, time.Second, &news)
		tell("dial %v", err)
		n.Hold(back) // one way: the question arrives, the answer does not
		link.Send("one")
		_, err = link.Await(t, time.Second)
		tell("held: %v", err)
		n.Release(back)
		m, err := link.Await(t, time.Second)
		tell("released: %v %v", m, err)

		n.Hold(there)
		n.Hold(there) // holds add up
		link.Send("two")
		w.After(100*ms, god, func() { n.Release(there) })
		_, err = link.Await(t, time.Second)
		tell("held twice: %v", err)
		_, err = n.Dial(t, client, node, 200*ms, &news)
		tell("dial while held: %v", err)
		w.After(0, god, func() { n.Reset(there); n.Release(there) })
		_, err = link.Await(t, time.Second)
		tell("reset: %v", err)
		link, err = n.Dial(t, client, node, time.Second, &news)
		tell("dial again: %v", err)
		link.Send("three")
		m, err = link.Await(t, time.Second)
		tell("answer %v %v", m, err)
	})
	drain(w)
	want := []string{
		"dial <nil>", "held: no answer in time", "released: one <nil>", "held twice: no answer in time", "dial while held: no answer in time",
		"reset: connection reset by peer", "dial again: <nil>", "answer three <nil>",
	}
	if !slices.Equal(events, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
	if caught, passed := n.Caught(there); caught != 3 || passed == 0 { // "two", the dial, and its end
		t.Errorf("%d messages caught and %d passed, expected 3 and some", caught, passed)
	}
}

func TestDeathBreaksConnectionsAfterWhatWasSent(t *testing.T) {
	w, n := network()
	p := w.NewProcess(1)
	node := nemesis.NodeParty(1)
	n.Listen(node, p, func(c *Conn) func(any) {
		return func(m any) {
			c.Reply(m)
			w.After(0, w.NewProcess(9), func() { p.Kill(); n.Down(node) })
		}
	})
	var events []string
	w.Go(w.NewProcess(2), func(t *Task) {
		var news Signal
		link, err := n.Dial(t, nemesis.ClientParty(1), node, time.Second, &news)
		if err != nil {
			panic(err)
		}
		link.Send("last words")
		m, err := link.Await(t, time.Second)
		events = append(events, fmt.Sprintf("%v %v", m, err))
		for link.Open() {
			t.Wait(&news, time.Second)
		}
		_, err = n.Dial(t, nemesis.ClientParty(1), node, time.Second, &news)
		events = append(events, fmt.Sprint(err))
		server(w, n, 1)
		_, err = n.Dial(t, nemesis.ClientParty(1), node, time.Second, &news)
		events = append(events, fmt.Sprint(err))
	})
	drain(w)
	if want := []string{"last words <nil>", "connection refused", "<nil>"}; !slices.Equal(events, want) {
		t.Errorf("%q, expected %q", events, want)
	}
}

func TestAPausedServerAnswersLater(t *testing.T) {
	w, n := network()
	p := server(w, n, 1)
	god := w.NewProcess(9)
	var events []string
	w.Go(w.NewProcess(2), func(t *Task) {
		var news Signal
		link, err := n.Dial(t, nemesis.ClientParty(1), nemesis.NodeParty(1), time.Second, &news)
		if err != nil {
			panic(err)
		}
		p.Pause()
		link.Send("hello")
		_, err = link.Await(t, time.Second)
		events = append(events, fmt.Sprint(err))
		w.After(0, god, p.Resume)
		m, err := link.Await(t, time.Second)
		events = append(events, fmt.Sprintf("%v %v", m, err))
	})
	drain(w)
	if want := []string{"no answer in time", "hello <nil>"}; !slices.Equal(events, want) {
		t.Errorf("%q, expected %q", events, want)
	}
}
