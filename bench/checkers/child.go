package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childCommand is the first argument of a process that measures one thing; the next is the job, then its arguments.
const childCommand = "measure-one"

// measured is what a child prints.
type measured struct {
	CPU        float64 // seconds, of the whole process
	Wall       float64 // seconds, of the job
	PeakMB     float64 // high mark of the resident set, 10⁶ bytes
	Events     int64
	Operations int64
	Verdict    string
	Anomalies  []string // kinds of violations that come with a certificate
	Note       string
}

// jobs are what a child can do.
var jobs = map[string]func(m *measured, args []string) error{
	"write": writeJob, "read": readJob, "check": checkJob, "record": recordJob, "porcupine": porcupineJob,
}

func child(args []string) error {
	if len(args) == 0 || jobs[args[0]] == nil {
		return fmt.Errorf("unknown job %q", args)
	}
	var m measured
	began := time.Now()
	if err := jobs[args[0]](&m, args[1:]); err != nil {
		return err
	}
	m.Wall = time.Since(began).Seconds()
	m.CPU = processorTime().Seconds()
	var err error
	if m.PeakMB, err = peakMemory(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// processorTime is what this process has used, on all cores.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot be with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the high mark of the resident set. The kernel's account of ended children will not do: it begins with what the parent had at the fork.
func peakMemory() (mb float64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("find the peak memory: %w", err)
	}
	for line := range bytes.Lines(status) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("find the peak memory: no VmHWM in /proc/self/status")
}

// measure runs a job in a process of its own.
func (b *bench) measure(job string, args ...any) (m measured, err error) {
	line := []string{childCommand, job}
	for _, a := range args {
		line = append(line, fmt.Sprint(a))
	}
	cmd := exec.Command(b.self, line...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("%v: %w", line[1:], err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("%v printed %q: %w", line[1:], out, err)
	}
	return m, nil
}
