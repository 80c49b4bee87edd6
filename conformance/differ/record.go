package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// What Kafka answered when it was asked last: lines of case, step, versions, path and value, with tabs between them. The first lines are the versions that it serves.
//
//go:embed kafka.txt
var kafkaText []byte

const recordFile = "differ/kafka.txt"

func recorded() (*system, error) {
	s := &system{name: "Kafka, recorded", serves: map[int16]span{}}
	lines := bufio.NewScanner(bytes.NewReader(kafkaText))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		f := strings.Split(lines.Text(), "\t")
		bad := fmt.Errorf("%s, line %d: %q, expected five fields with tabs between them", recordFile, n, lines.Text())
		if len(f) != 5 {
			return nil, bad
		}
		for text := range strings.SplitSeq(f[2], ",") {
			from, to, ok := strings.Cut(text, "-")
			if !ok {
				to = from
			}
			first, err := strconv.ParseInt(from, 10, 16)
			last, err2 := strconv.ParseInt(to, 10, 16)
			if err != nil || err2 != nil {
				return nil, bad
			}
			if f[0] == "serves" {
				k, err := strconv.ParseInt(f[1], 10, 16)
				if err != nil {
					return nil, bad
				}
				s.serves[int16(k)] = span{int16(first), int16(last)}
				continue
			}
			for v := first; v <= last; v++ {
				s.asked = append(s.asked, answer{at{f[0], f[1], f[3]}, int16(v), f[4]})
			}
		}
	}
	return s, lines.Err()
}

// record writes what a system answered.
func record(s *system) error {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(s.serves)) {
		fmt.Fprintf(&b, "serves\t%d\t%d-%d\t\t\n", k, s.serves[k].min, s.serves[k].max)
	}
	type same struct {
		at
		value string
	}
	versions := map[same][]int16{}
	var order []same
	for _, a := range s.asked {
		k := same{a.at, a.value}
		if versions[k] == nil {
			order = append(order, k)
		}
		versions[k] = append(versions[k], a.version)
	}
	slices.SortStableFunc(order, func(x, y same) int {
		if x.which != y.which || x.step != y.step {
			return 0
		}
		return strings.Compare(x.path, y.path)
	})
	for _, k := range order {
		v := versions[k]
		slices.Sort(v)
		text := strings.NewReplacer("v", "", " to ", "-", ", ", ",").Replace(inWords(v))
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", k.which, k.step, text, k.path, k.value)
	}
	return os.WriteFile(recordFile, b.Bytes(), 0o644)
}
