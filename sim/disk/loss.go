package disk

// What is chosen at a power loss.
type What string

// The choices. Version 0 is always the state that was flushed, the highest one what a process saw last.
const (
	Name   What = "name"   // did the change of a name happen?
	Cut    What = "cut"    // how many of the file's cuts happened?
	Size   What = "size"   // which of its sizes has the file?
	Sector What = "sector" // which of its contents has the sector?
	Torn   What = "torn"   // how much of the last write was made (see Disk.StopAt)?
)

// Choice is one thing to be chosen.
type Choice struct {
	What      What
	Path      string
	Index, Of int // it is number Index of so many of this kind in this file or folder, in the order of time or of place
	Versions  int // choose from 0 to Versions − 1
}

// Choices answers a choice. The questions come in an order that follows from the disk's state alone.
type Choices func(Choice) int

// Intn is a source of choices, such as *rand.Rand.
type Intn interface{ IntN(n int) int }

// LoseAll loses everything that was not flushed.
func LoseAll(Choice) int { return 0 }

// LoseNothing is a power loss after which all was written nevertheless.
func LoseNothing(c Choice) int { return c.Versions - 1 }

// LoseNames keeps all content of files, and loses names.
func LoseNames(c Choice) int {
	if c.What == Name {
		return 0
	}
	return c.Versions - 1
}

// LoseContent keeps all names, and loses the content of files but not their size: it reads as zeros.
func LoseContent(c Choice) int {
	if c.What == Sector {
		return 0
	}
	return c.Versions - 1
}

// TearTail keeps everything but the last sector of each file.
func TearTail(c Choice) int {
	if c.What == Sector && c.Index == c.Of-1 {
		return 0
	}
	return c.Versions - 1
}

// LastFirst keeps only what was done last: the last name, the last sector of each file.
func LastFirst(c Choice) int {
	if (c.What == Name || c.What == Sector) && c.Index < c.Of-1 {
		return 0
	}
	return c.Versions - 1
}

// Random chooses evenly.
func Random(r Intn) Choices { return func(c Choice) int { return r.IntN(c.Versions) } }

// Enumeration goes through all combinations of choices. Use it as
//
//	for e := new(Enumeration); e.Next(); {
//		d := from.Clone()
//		d.PowerLoss(e.Choose)
//		…
//	}
type Enumeration struct {
	at      []int // the choice at each question
	of      []int // and how many there were
	asked   int
	started bool
}

// Next moves on to the next combination; false when all have been seen.
func (e *Enumeration) Next() bool {
	if !e.started {
		e.started = true
		return true
	}
	e.at, e.of = e.at[:e.asked], e.of[:e.asked]
	for n := len(e.at) - 1; n >= 0; n-- {
		if e.at[n]++; e.at[n] < e.of[n] {
			e.at, e.of, e.asked = e.at[:n+1], e.of[:n+1], 0
			return true
		}
	}
	return false
}

// Choose answers one choice of the current combination.
func (e *Enumeration) Choose(c Choice) int {
	if e.asked == len(e.at) {
		e.at, e.of = append(e.at, 0), append(e.of, c.Versions)
	}
	e.asked++
	return e.at[e.asked-1]
}
