package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Main runs one node as the whole work of a process: with the configuration of a file and overrides, until SIGTERM or SIGINT. A second signal ends it
// at once. With ackproof.exit.with.parent it also stops when stdin ends.
func Main(ctx context.Context, path string, sets []string, stdin io.Reader, stderr io.Writer) error {
	cfg, err := LoadConfig(path, sets)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if cfg.ExitWithParent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			io.Copy(io.Discard, stdin) // nothing is said there; its end is the message
			cancel()
		}()
	}
	context.AfterFunc(ctx, stop) // the next signal is not caught any more
	if cfg.MemoryLimit > 0 {
		debug.SetMemoryLimit(cfg.MemoryLimit)
	}
	n, err := Open(cfg, log)
	if err != nil {
		return err
	}
	log.Info("listening", "node", cfg.NodeID, "address", fmt.Sprint(n.Addr()))
	return n.Run(ctx)
}
