package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/report"
	"ackproof/sim/campaign"
)

// realByDefault are the bugs that the faults of a usual test show with real processes.
const realByDefault = "B01,B02,B05,B06,B09,B10,B11,B16,B19"

// realLoad is the longest load of one test; a violation that is certain ends it before.
const realLoad = 30 * time.Second

// withProcesses scores bugs by tests of real processes, one after the other: this program's own, by `ackproof test`. The control of each campaign is the test that
// found the bug, or the last one, without it.
func (f scoreFlags) withProcesses(ctx context.Context, bugs []campaign.Quarry, stderr io.Writer) (s campaign.Score, err error) {
	store, err := os.MkdirTemp("", "ackproof-score-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	progress, began := report.NewProgress(stderr, f.quiet), time.Now()
	defer progress.Done()
	progress.Phase("tests", 0)
	seed, tests := f.from, 0
	for _, q := range bugs {
		var findings []campaign.Finding
		for range f.campaigns {
			var found campaign.Finding
			var last model.Results
			for range f.most {
				if last, err = f.realTest(ctx, q, true, seed, store); err != nil {
					return s, err
				}
				tests++
				found.Seeds++
				found.Seconds += last.Seconds.Setup + last.Seconds.Load
				progress.Tick(time.Since(began), fmt.Sprintf("%s, %d tests", q.ID, tests))
				if last.Verdict == model.Violated {
					found.Found = true
					for _, c := range last.Claims {
						for _, a := range c.Anomalies {
							found.Anomalies = append(found.Anomalies, string(a.Kind))
						}
					}
					break
				}
				seed++
			}
			findings = append(findings, found)
			control, err := f.realTest(ctx, q, false, last.Seed, store)
			if err != nil {
				return s, err
			}
			s.Controls++
			switch control.Verdict {
			case model.Violated:
				s.FalseAlarms++
				fmt.Fprintf(stderr, "false alarm: seed %d without a bug\n", control.Seed)
			case model.Undecided, model.NotTested:
				s.ControlsOpen++
			}
			seed++
		}
		s.Plants = append(s.Plants, campaign.NewPlantScore(q, "real", findings))
	}
	s.Made = campaign.Made{Command: strings.Join(append([]string{"ackproof"}, os.Args[1:]...), " "), Date: began.UTC().Format(time.DateOnly), CPUs: runtime.NumCPU(),
		Seconds: time.Since(began).Seconds()}
	return s, nil
}

// realKinds are the kinds of faults for a bug that needs more than kills, pauses and partitions: kills, and what it needs; none for others, which is the default.
func realKinds(faults []string) []string {
	more := map[string][]nemesis.Kind{
		"power": {nemesis.PowerLoss, nemesis.DiskSlow}, "wipe": {nemesis.DiskWipe}, "disk": {nemesis.DiskError, nemesis.FlushError, nemesis.DiskFull},
	}
	var out []string
	for _, f := range faults {
		for _, k := range more[f] {
			out = append(out, string(k))
		}
	}
	if len(out) > 0 {
		out = append([]string{string(nemesis.Kill)}, out...)
	}
	return out
}

// realTest runs one test and returns its results.
func (f scoreFlags) realTest(ctx context.Context, q campaign.Quarry, planted bool, seed int64, store string) (r model.Results, err error) {
	exe, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"test", "--json", "--quiet", "--time", realLoad.String(), "--seed", strconv.FormatInt(seed, 10), "--store", store}
	if planted {
		args = append(args, "--plant", q.ID)
	}
	if q.Needs.Groups {
		args = append(args, "--workload", harness.WorkloadGroup)
	}
	if kinds := campaign.Kinds(q); len(kinds) > 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, string(k))
		}
		args = append(args, "--nemesis", strings.Join(names, ","))
	}
	if q.Needs.Flush {
		args = append(args, "--flush", "batch")
	}
	if kinds := realKinds(q.Needs.Faults); len(kinds) > 0 {
		args = append(args, "--nemesis", strings.Join(kinds, ","))
	}
	if q.Needs.MinISR > 0 {
		args = append(args, "--min-insync", strconv.Itoa(q.Needs.MinISR))
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its nodes before itself
	cmd.WaitDelay = 30 * time.Second
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run()
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("ackproof %s: %v, and no results: %s", strings.Join(args, " "), failed, firstLine(errs.String()))
	}
	return r, nil
}
