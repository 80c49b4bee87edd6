package main

var validator = Checker{"validator", []string{"histories"}, "^TestJoiner", []Mutant{
	{"histories/joiner.go", `if ev.Seq <= j.seq {`, `if ev.Seq < j.seq {`, "a sequence number may repeat"},
	{"histories/joiner.go", `if int64(ev.Time) < j.time {`, `if int64(ev.Time) < 0 {`, "the clock may go back"},
	{"histories/joiner.go", `ev.Offset > maxNumber || ev.HighWatermark > maxNumber`, `ev.Offset > maxNumber`, "the high watermark is not bounded"},
	{"histories/joiner.go", `c.exclusive || !ev.Pipelined`, `c.exclusive && !ev.Pipelined`, "a pipelined operation may begin beside one that is not"},
	{"histories/joiner.go", `if i < n && spans[i].from < to {`, `if i < n && spans[i].from <= to {`, "values that touch count as written twice"},
	{"histories/joiner.go", `case op.process != ev.Process:`, `case false:`, "any process may complete an operation"},
	{"histories/joiner.go", `op.kind != ev.Kind || op.partition != ev.Partition`, `op.kind != ev.Kind`, "a completion may name another partition"},
	{"histories/joiner.go", `		c.first = openOp{}
`, ``, "an operation may complete twice"},
	{"histories/joiner.go", `		delete(j.open, ev.Op)
`, ``, "a pipelined operation may complete twice"},
	{"histories/joiner.go", `if c.open > 0 {
		c = &client{}`, `if false {
		c = &client{}`, "a process that comes to another's place drives it out"},
	{"histories/joiner.go", `if known := j.crowd[process]; known != nil {`, `if known := j.crowd[process]; known != nil && c.open > 0 {`, "a process that found no room is forgotten when there is room"},
	{"histories/joiner.go", `c.open, c.exclusive = c.open+1, !ev.Pipelined`, `c.open, c.exclusive = 1, !ev.Pipelined`, "open operations of a process are not counted"},
	{"histories/joiner.go", `case n > 0 && spans[n-1].to == from:`, `case n > 0 && spans[n-1].to >= from:`, "a value that overlaps the last span counts as new"},
	{"histories/joiner.go", `ev.Type == OK && ev.Offset < -1`, `ev.Type == OK && ev.Offset < -2`, "the least offset is off by one"},
	{"histories/joiner.go", `if c.writes == nil || c.producer != producer {`, `if c.writes == nil {`, "the values of all producers of a process are one producer's"},
	{"histories/joiner.go", `(ev.Type == Invoke || ev.Type == OK)`, `ev.Type == Invoke`, "an object's answer may have no steps"},
}}

var codec = Checker{"native format", []string{"histories"}, "", []Mutant{
	{"histories/codec.go", `e.seq, e.time = ev.Seq, ev.Time`, `e.seq = ev.Seq`, "time is not coded against the event before"},
	{"histories/codec.go", `offset = r.Offset + int64(r.Count)
		}
	}
	if len(ev.Steps) > 0 {`, `offset = r.Offset
		}
	}
	if len(ev.Steps) > 0 {`, "the encoder takes a run's offset against the beginning of the run before"},
	{"histories/codec.go", `v < -limit || v >= limit {`, `v < -limit || v > limit {`, "a number one too large for its field wraps"},
	{"histories/codec.go", `int64(r.Count)<<2|int64(r.Defect&3)`, `int64(r.Count)<<2`, "defects of values are lost"},
	{"histories/codec.go", `le.PutUint32(head[8:], crc32.Checksum(payload, castagnoli))`, `le.PutUint32(head[8:], crc32.ChecksumIEEE(payload))`, "another polynomial for the payload"},
	{"histories/codec.go", `if n == 1 && !d.bad {`, `if !d.bad {`, "words outside of the dictionary get a number"},
	{"histories/codec.go", `head |= flagPipelined
`, `head |= 0
`, "pipelined operations are recorded as plain ones"},
	{"histories/codec.go", `has |= hasKey << bit`, `has |= hasKey << (bit & 1)`, "fields of a step get one another's bits"},
	{"histories/codec.go", `case d.version == 1 && ev.Kind >= Object:`, `case d.version == 1 && ev.Kind > Object:`, "marks of the first version are read as objects"},
	{"histories/codec.go", `if c.bad || c.at != len(payload) {`, `if c.bad {`, "bytes behind the header are ignored"},
}}
