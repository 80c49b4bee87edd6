package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// versions are a range, both ends included.
type versions struct{ min, max int16 }

func (v versions) String() string {
	if v.min == v.max {
		return strconv.Itoa(int(v.min))
	}
	return fmt.Sprintf("%d–%d", v.min, v.max)
}

// api is what came in for one API.
type api struct {
	name string
	seen map[int16]bool
}

var firstOfKind = regexp.MustCompile(`msg="first request of its kind".* api_key=(\d+) api=(\S+) version=(\d+) too_new=(\S+) client_id=(\S+)`)

// usedVersions reads from the brokers' logs which versions of which APIs a client sent. An ApiVersions request that is too new does not count: it is how a
// client finds out what there is.
func usedVersions(dir string) (map[int16]*api, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "broker-*", "broker.log"))
	if err != nil || len(logs) == 0 {
		return nil, fmt.Errorf("no logs of brokers in %s (%v)", dir, err)
	}
	used := map[int16]*api{}
	for _, path := range logs {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			m := firstOfKind.FindStringSubmatch(lines.Text())
			if m == nil || m[4] == "true" || strings.HasPrefix(m[5], "broker-") || m[5] == "ackproof-local" || m[5] == judgeID {
				continue
			}
			key, _ := strconv.Atoi(m[1]) // the expression took digits only
			version, _ := strconv.Atoi(m[3])
			if used[int16(key)] == nil {
				used[int16(key)] = &api{name: m[2], seen: map[int16]bool{}}
			}
			used[int16(key)].seen[int16(version)] = true
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return used, nil
}
