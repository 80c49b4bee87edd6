package cluster

import "ackproof/sim/world"

// turn is one request of a connection. Requests are taken in their order, but may be done in another; their answers leave in theirs (R7).
type turn struct {
	*world.Conn
	line   *line
	over   bool
	answer any // nil: it gets none
}

// line is the requests of a connection that are not answered yet.
type line struct{ waiting []*turn }

func (l *line) join(c *world.Conn) *turn {
	t := &turn{Conn: c, line: l}
	l.waiting = append(l.waiting, t)
	return t
}

// Reply answers the request, once those before it are answered.
func (t *turn) Reply(m any) {
	if t.over {
		return
	}
	t.over, t.answer = true, m
	l := t.line
	for len(l.waiting) > 0 && l.waiting[0].over {
		if first := l.waiting[0]; first.answer != nil {
			first.Conn.Reply(first.answer)
		}
		l.waiting = l.waiting[1:]
	}
}

// Skip ends a request that gets no answer.
func (t *turn) Skip() { t.Reply(nil) }
