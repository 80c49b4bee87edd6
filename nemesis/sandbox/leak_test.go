//go:build linux

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// traces are what a harness could leave behind on the machine, as this process sees it.
type traces struct {
	processes  map[string]bool // that carry the tag, by number
	namespaces map[string]bool // that some process lives in
	mounts     string
}

func look(t *testing.T, tag string) traces {
	t.Helper()
	s := traces{map[string]bool{}, map[string]bool{}, ""}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		// Each of these reads fails for a process that ends just now. One that has ended and waits for its parent does not count: here, that is the test itself,
		// which is the first process of its namespace and inherits those of the dead.
		if stat, err := os.ReadFile(dir + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		if env, _ := os.ReadFile(dir + "/environ"); strings.Contains(string(env), tag) {
			s.processes[filepath.Base(dir)] = true
		}
		for _, kind := range []string{"net", "mnt", "pid", "user"} {
			if ns, err := os.Readlink(dir + "/ns/" + kind); err == nil {
				s.namespaces[ns] = true
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	s.mounts = string(mounts)
	return s
}

// The harness, or its outer half, is killed at any moment of its life: nothing that it made is there a moment later.
func TestNothingSurvivesTheHarness(t *testing.T) {
	if unavailable != nil {
		t.Skip("there is no sandbox here: ", unavailable)
	}
	pick := rand.New(rand.NewPCG(1, 1))
	for round := range 12 {
		dir := t.TempDir()
		tag := fmt.Sprintf("%s=%s", argEnv, dir)
		before := look(t, tag)
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(bounded, "/proc/self/exe")
		cmd.Env = append(withoutMarker(os.Environ()), roleEnv+"=harness", tag)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		what := "the outer program"
		if round%3 == 0 { // when all is there; otherwise somewhere on the way
			line, err := bufio.NewReader(out).ReadString('\n')
			if line != "ready\n" {
				t.Fatalf("the harness says %q, %v", line, err)
			}
			eventually(t, "the harness, the one inside, and three nodes with a child each", func() bool { return len(look(t, tag).processes) == 2+3*2 })
		} else {
			time.Sleep(time.Duration(pick.IntN(60)) * time.Millisecond) // the moment is the point
		}
		victim := cmd.Process.Pid
		if round%2 == 1 {
			if inner := innerOf(victim); inner != 0 {
				what, victim = "the program inside", inner
			}
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if err := bounded.Err(); err != nil {
			t.Fatalf("%s was killed, and the outer program did not end: %v", what, err)
		}
		eventually(t, "nothing is left after "+what+" was killed", func() bool {
			now := look(t, tag)
			maps.DeleteFunc(now.namespaces, func(ns string, _ bool) bool { return before.namespaces[ns] })
			return len(now.processes)+len(now.namespaces) == 0 && now.mounts == before.mounts
		})
		files, err := filepath.Glob(dir + "/*/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if filepath.Base(f) != "log" { // the folders of the nodes were asked for; nothing else is in them
				t.Errorf("%s is left", f)
			}
		}
	}
}

// innerOf is the program inside that the outer one has started, 0 if it has not within a moment. An outer program has other children, too: Go's runtime tries out at the start, with a
// short-lived one, what the kernel can do.
func innerOf(outer int) int {
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", outer))
		for _, l := range lists {
			text, _ := os.ReadFile(l)
			for _, child := range strings.Fields(string(text)) {
				env, _ := os.ReadFile("/proc/" + child + "/environ")
				if pid, err := strconv.Atoi(child); err == nil && strings.Contains(string(env), marker+"=") {
					return pid
				}
			}
		}
	}
	return 0
}
