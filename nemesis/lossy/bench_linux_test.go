package lossy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// BenchmarkAppend is what a program gets that appends blocks and flushes now and then, on the disk and on the file system below it: MB/s. Time that a flush takes is 0 here, so flushes on the disk are
// cheaper than real ones.
func BenchmarkAppend(b *testing.B) {
	if ok, why := Available(); !ok {
		b.Skip("no file system that loses power here: " + why)
	}
	for _, block := range []int{4 << 10, 64 << 10, 1 << 20} {
		for _, flush := range []int{0, 16} { // blocks between two flushes; 0: none
			for _, bare := range []bool{true, false} {
				name := fmt.Sprintf("%dKiB/flush%d/", block>>10, flush) + map[bool]string{true: "bare", false: "lossy"}[bare]
				b.Run(name, func(b *testing.B) {
					dir := b.TempDir()
					var f *FS
					if !bare {
						if err := os.Mkdir(dir+"/seen", 0o755); err != nil {
							b.Fatal(err)
						}
						var err error
						if f, err = New(dir+"/seen", dir+"/back", Options{WriteBack: -1}); err != nil {
							b.Fatal(err)
						}
						defer f.Close()
						dir += "/seen"
					}
					out := ran(b, f, "pump", dir, fmt.Sprint(block), fmt.Sprint(b.N), fmt.Sprint(flush))
					took, err := time.ParseDuration(out)
					if err != nil {
						b.Fatal(out)
					}
					b.ReportMetric(float64(block)*float64(b.N)/1e6/took.Seconds(), "MB/s")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// pump appends blocks to a file of at most 64 MiB, which it begins anew then, and tells how long that took.
func pump(args []string) error {
	block, n, flush := make([]byte, atoi(args[1])), atoi(args[2]), atoi(args[3])
	f, err := os.Create(args[0] + "/pump")
	if err != nil {
		return err
	}
	begin, size := time.Now(), 0
	for i := range n {
		if size+len(block) > 64<<20 {
			if err := f.Truncate(0); err != nil {
				return err
			}
			if _, err := f.Seek(0, 0); err != nil {
				return err
			}
			size = 0
		}
		if _, err := f.Write(block); err != nil {
			return err
		}
		size += len(block)
		if flush > 0 && i%flush == flush-1 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	fmt.Println(time.Since(begin))
	return nil
}

// hosting is a harness that is about to be killed: it starts a program on a disk, and says its number.
func hosting(args []string) error {
	f, err := New(args[0]+"/seen", args[0]+"/back", Options{})
	if err != nil {
		return err
	}
	p, err := started(f, "script", args[0]+"/seen", "write a 0 x", "flush a", "wait")
	if err != nil {
		return err
	}
	for line := p.line(); line != "waiting"; line = p.line() {
		if line == "" {
			return fmt.Errorf("the script ended early")
		}
	}
	fmt.Println(p.cmd.Process.Pid)
	select {}
}

func mounts(t *testing.T, dir string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), dir)
}
