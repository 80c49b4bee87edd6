package histories

import (
	"strconv"
	"time"
)

// Header is what a history says about itself before the first event.
type Header struct {
	Run   uint64    // id of the run; every value of the run carries it
	Seed  int64     // what workload and schedule were drawn from
	Start time.Time // wall clock at Time 0, for people; zero if unknown, else of the years 1678 to 2261. Read back in UTC.
	// Names begin the dictionary of notes: words that will be used often. They must differ from each other.
	Names []string
}

func itoa(v uint64) string { return strconv.FormatUint(v, 10) }
