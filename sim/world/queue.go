package world

// queue is a heap of events, four children to a node: fewer levels than two, and siblings lie side by side in memory.
type queue struct{ heap []*Event }

func before(a, b *Event) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

func (q *queue) push(e *Event) {
	q.heap = append(q.heap, e)
	q.up(len(q.heap)-1, e)
}

func (q *queue) pop() *Event {
	if len(q.heap) == 0 {
		return nil
	}
	e := q.heap[0]
	q.remove(0)
	return e
}

func (q *queue) remove(i int) {
	e, n := q.heap[i], len(q.heap)-1
	last := q.heap[n]
	q.heap[n] = nil
	q.heap = q.heap[:n]
	e.place = -1
	if i < n {
		if i > 0 && before(last, q.heap[(i-1)/4]) {
			q.up(i, last)
		} else {
			q.down(i, last)
		}
	}
}

func (q *queue) up(i int, e *Event) {
	for i > 0 {
		parent := (i - 1) / 4
		if !before(e, q.heap[parent]) {
			break
		}
		q.set(i, q.heap[parent])
		i = parent
	}
	q.set(i, e)
}

func (q *queue) down(i int, e *Event) {
	for {
		least := 4*i + 1
		if least >= len(q.heap) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(q.heap)); c++ {
			if before(q.heap[c], q.heap[least]) {
				least = c
			}
		}
		if !before(q.heap[least], e) {
			break
		}
		q.set(i, q.heap[least])
		i = least
	}
	q.set(i, e)
}

func (q *queue) set(i int, e *Event) {
	q.heap[i] = e
	e.place = i
}
