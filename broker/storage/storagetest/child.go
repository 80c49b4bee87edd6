package storagetest

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// childEnv tells the test binary that it is the child of a kill test, and holds the folder to work in.
const childEnv = "ACKPROOF_STORAGE_CHILD"

// ChildDir is the folder of the test that started this process by KillChild; ok is false in any other process.
func ChildDir() (dir string, ok bool) { return os.LookupEnv(childEnv) }

// Acknowledge tells the parent, in a child, that everything up to n has been promised.
func Acknowledge(n int64) {
	_, _ = os.Stdout.WriteString("ack " + strconv.FormatInt(n, 10) + ".\n") // if the parent is gone, so are we soon
}

// KillChild runs the named test of this test binary as a process of its own, kills it (SIGKILL) after so many acknowledgements, and gives
// the last one that arrived. while is called once before the kill, with the child alive.
func KillChild(t *testing.T, test, dir string, after int, while func()) (last int64) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	seen := 0
	last = -1
	var other []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, found := strings.CutPrefix(lines.Text(), "ack ")
		n, whole := strings.CutSuffix(n, ".")
		if !found || !whole { // the kill may have cut the last line
			other = append(other, lines.Text())
			continue
		}
		if last, err = strconv.ParseInt(n, 10, 64); err != nil {
			t.Errorf("the child said %q", lines.Text())
		}
		if seen++; seen == after {
			while()
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // killed: it always has an error
	if seen < after {
		t.Fatalf("the child ended by itself after %d acknowledgements:\n%s", seen, strings.Join(other, "\n"))
	}
	return last
}
