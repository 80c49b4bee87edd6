package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ackproof/harness"
	"ackproof/histories"
	"ackproof/model"
	"ackproof/report/browse"
)

// reportFlags are the flags of `ackproof report` as they were given.
type reportFlags struct {
	open      bool
	porcupine string
	serve     bool
	port      int
}

func newReportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report RUNDIR | report --serve [STORE]",
		Short: "write the page of a run, or browse all runs of a store",
		Long: `Writes report.html into the directory of a run, or writes it anew: one file that asks nobody for
anything and holds every operation of the run.

With --porcupine, writes porcupine's own view of the windows of a partition that touch the offsets
FROM to TO (default: all of its windows) into the run's folder porcupine, and says what porcupine
answers.

With --serve, lists the runs of a store (default: store) in a browser on this machine, narrows the
list, puts two runs side by side and opens the page of each. It changes nothing in the store.

Exit codes: 0 written, or the browser was ended by a signal; 3 it could not be written, or no port
was free; 254 RUNDIR is not the directory of a run that came to its end, or something in it is
damaged or newer than this ackproof.`,
		Example: `  ackproof report store/latest
  ackproof report store/latest --porcupine p3:100-140
  ackproof report --serve`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.open, "open", false, "open the page, or the list, in the desktop's browser")
	flags.StringVar(&f.porcupine, "porcupine", "", "write porcupine's view of PARTITION[:FROM-TO] instead of the page")
	flags.BoolVar(&f.serve, "serve", false, "browse the runs of a store, on loopback only")
	flags.IntVar(&f.port, "port", 0, "port for --serve; 0 = any free one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.validate(args); err != nil {
			return err
		}
		if f.serve {
			store := "store"
			if len(args) == 1 {
				store = args[0]
			}
			return serveReports(cmd.Context(), store, f, os.Stdout)
		}
		if f.porcupine != "" {
			return runPorcupine(args[0], f, os.Stdout)
		}
		return runReport(args[0], f, os.Stdout)
	}
	return cmd
}

func (f reportFlags) validate(args []string) error {
	switch {
	case !f.serve && len(args) != 1:
		return usagef("report without a run directory, expected one, or --serve")
	case f.porcupine != "" && f.serve:
		return usagef("--porcupine with --serve, expected one of them")
	case f.port != 0 && !f.serve:
		return usagef("--port without --serve, expected both or none")
	case f.port < 0 || f.port > 65535:
		return usagef("--port is %d, expected 0 to 65535", f.port)
	}
	return nil
}

func runReport(dir string, f reportFlags, stdout io.Writer) error {
	path, err := harness.WriteReport(dir)
	if err != nil {
		return reportError(err)
	}
	fmt.Fprintln(stdout, path)
	if f.open {
		return openInBrowser(path)
	}
	return nil
}

// runPorcupine writes porcupine's views and says what each answers.
func runPorcupine(dir string, f reportFlags, stdout io.Writer) error {
	partition, from, to, err := parseWindow(f.porcupine)
	if err != nil {
		return err
	}
	views, err := harness.WritePorcupine(dir, partition, from, to)
	if err != nil {
		return reportError(err)
	}
	for _, v := range views {
		fmt.Fprintf(stdout, "%s  %s: %d operations, %s\n", filepath.Join(dir, filepath.FromSlash(v.Path)), v.Window, v.Operations, v.Verdict)
	}
	if f.open {
		return openInBrowser(filepath.Join(dir, filepath.FromSlash(views[0].Path)))
	}
	return nil
}

// parseWindow reads PARTITION[:FROM-TO]; the partition may be written 3 or p3, and TO is the last offset.
func parseWindow(text string) (partition int32, from, to int64, err error) {
	wrong := usagef("--porcupine is %q, expected PARTITION[:FROM-TO], such as p3:100-140", text)
	name, offsets, some := strings.Cut(text, ":")
	p, err := strconv.ParseUint(strings.TrimPrefix(name, "p"), 10, 31)
	if err != nil {
		return 0, 0, 0, wrong
	}
	if !some {
		return int32(p), 0, math.MaxInt64, nil
	}
	low, high, some := strings.Cut(offsets, "-")
	first, err1 := strconv.ParseUint(low, 10, 61)
	last, err2 := strconv.ParseUint(high, 10, 61)
	if !some || err1 != nil || err2 != nil || last < first {
		return 0, 0, 0, wrong
	}
	return int32(p), int64(first), int64(last) + 1, nil
}

// reportError tells what is wrong with a run directory from what is wrong with the disk.
func reportError(err error) error {
	var wrong harness.UsageError
	if errors.As(err, &wrong) || errors.Is(err, histories.ErrMalformed) {
		return usagef("%v", err)
	}
	return exitError{code: model.ExitInfrastructure, message: err.Error()}
}

// serveReports serves the browser of runs until a signal ends it.
func serveReports(ctx context.Context, dir string, f reportFlags, stdout io.Writer) error {
	store, err := harness.OpenStore(dir)
	if err != nil {
		return reportError(err)
	}
	ctx, stop := signal.NotifyContext(orBackground(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", f.port))
	if err != nil {
		return exitError{code: model.ExitInfrastructure, message: "serve the runs: " + err.Error()}
	}
	server := &http.Server{Handler: browse.Handler(store), ReadHeaderTimeout: 10 * time.Second}
	url := "http://" + listener.Addr().String() + "/"
	fmt.Fprintf(stdout, "runs of %s: %s (ends with Ctrl-C)\n", dir, url)
	if f.open {
		if err := openInBrowser(url); err != nil {
			fmt.Fprintln(os.Stderr, "ackproof: "+err.Error())
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return exitError{code: model.ExitInfrastructure, message: "serve the runs: " + err.Error()}
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		server.Close()
	}
	<-ended
	return nil
}

// openInBrowser asks the desktop to show a file or an address.
func openInBrowser(what string) error {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	if err := exec.Command(opener[0], append(opener[1:], what)...).Run(); err != nil {
		return exitError{code: model.ExitInfrastructure, message: fmt.Sprintf("open %s: %s: %v, expected a desktop", what, opener[0], err)}
	}
	return nil
}
