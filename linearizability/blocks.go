package linearizability

import (
	"iter"
	"math"
)

const (
	blockBits = 6
	blockSize = 1 << blockBits
)

// blocks keep values under numbers, in blocks that never move: nothing is copied as a history grows. Each lane, of a partition, fills blocks of its own, so what is
// looked at together lies together.
type blocks[T any] struct{ all [][]T } // each reaches to the end of those that were made with it

// lane is what one partition has taken of some blocks.
type lane struct {
	blocks []int32 // the first number of each
	left   int32   // room in the last one
}

// size is how many a lane has, if they were taken one by one; number is the i-th of them.
func (l *lane) size() int          { return len(l.blocks)*blockSize - int(l.left) }
func (l *lane) number(i int) int32 { return l.blocks[i>>blockBits] + int32(i)&(blockSize-1) }

// take gives n numbers in a row to a lane; ok is false if there are no more.
func (b *blocks[T]) take(l *lane, n int32) (first int32, ok bool) {
	if n > l.left {
		more := (int(n) + blockSize - 1) / blockSize
		if len(b.all)+more > math.MaxInt32/blockSize {
			return 0, false
		}
		for room := make([]T, more*blockSize); len(room) > 0; room = room[blockSize:] {
			l.blocks = append(l.blocks, int32(len(b.all))<<blockBits)
			b.all = append(b.all, room)
		}
		l.left = int32(more) * blockSize
		first = l.blocks[len(l.blocks)-more]
	} else {
		first = l.blocks[len(l.blocks)-1] + blockSize - l.left
	}
	l.left -= n
	return first, true
}

// at is the value of a number.
func (b *blocks[T]) at(n int32) *T { return &b.all[n>>blockBits][n&(blockSize-1)] }

// span is n values in a row that were taken together.
func (b *blocks[T]) span(first, n int32) []T {
	if n == 0 {
		return nil
	}
	return b.all[first>>blockBits][first&(blockSize-1):][:n]
}

// of goes through a lane whose numbers were taken one by one, from its i-th on.
func (b *blocks[T]) of(l *lane, i int) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for n := l.size(); i < n; i++ {
			if number := l.number(i); !yield(number, b.at(number)) {
				return
			}
		}
	}
}
