package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc/PID/stat: USER_HZ, which Linux has fixed at 100 for user space (man 5 proc).
const clockTick = time.Second / 100

// cpuOf is the CPU time, user and kernel, that a process has used since it started.
func cpuOf(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	// The second field is the program's name in brackets and may hold anything; utime and stime are the 12th and 13th fields behind it.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("CPU time of process %d: %d fields behind the name in /proc/%d/stat, expected at least 13", pid, len(fields), pid)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// PeakRSS is the largest resident set that a process ever had, in bytes.
func PeakRSS(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("peak memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(raw)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("peak memory of process %d: no VmHWM in /proc/%d/status", pid, pid)
}

// ownCPU is the CPU time of this process, which is the client's.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail with these arguments (man 2 getrusage)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// metered runs a phase and adds what servers and client spent on it.
func metered(servers []int, run func() (Phase, error)) (Phase, error) {
	before, err := cpuOfAll(servers)
	if err != nil {
		return Phase{}, err
	}
	own := ownCPU()
	phase, err := run()
	if err != nil {
		return phase, err
	}
	phase.ClientCPUPerGB = perGB(ownCPU()-own, phase.Bytes)
	if len(servers) == 0 {
		return phase, nil
	}
	after, err := cpuOfAll(servers)
	if err != nil {
		return phase, err
	}
	cost := perGB(after-before, phase.Bytes)
	phase.ServerCPUPerGB = &cost
	return phase, nil
}

func cpuOfAll(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		cpu, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

func perGB(cpu time.Duration, bytes int64) float64 { return cpu.Seconds() / (float64(bytes) / 1e9) }

// peaks reads the servers' memory.
func peaks(pids []int) ([]Server, error) {
	servers := make([]Server, 0, len(pids))
	for _, pid := range pids {
		rss, err := PeakRSS(pid)
		if err != nil {
			return nil, err
		}
		servers = append(servers, Server{PID: pid, PeakRSS: rss})
	}
	return servers, nil
}

// Children are the process ids of a process's children, nil where /proc does not tell.
func Children(pid int) []int {
	var children []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is sound
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		var parent int
		if _, err := fmt.Sscanf(string(raw[bytes.LastIndexByte(raw, ')')+1:]), " %1s %d", new(string), &parent); err != nil || parent != pid {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			children = append(children, child)
		}
	}
	slices.Sort(children)
	return children
}
