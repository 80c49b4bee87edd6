package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ackproof/harness"
	"ackproof/histories"
	"ackproof/model"
	"ackproof/verify"
)

func newVerifyCommand() *cobra.Command {
	var history string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify CERTIFICATE",
		Short: "judge one certificate against its history",
		Long: `Reads a certificate and the history that it is about, and judges it by code that shares nothing
with the checkers: the operations must stand in the history exactly as they are quoted, and
together they must prove the anomaly. Every anomaly that test and check report has a rule. What
did not work after healing (liveness) is compared with the facts.json beside the history.

Exit codes: 0 accepted; 1 rejected, with the reason; 254 wrong usage, or a certificate or history
that is malformed or cannot be read.`,
		Example: `  ackproof verify store/latest/certificates/no-loss-1.json`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&history, "history", "", "file with the history (default: the one that the certificate names, from its own folder)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the judgement as JSON on stdout")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return runVerify(args[0], history, asJSON, os.Stdout)
	}
	return cmd
}

// judgement is what `ackproof verify --json` prints.
type judgement struct {
	Certificate string        `json:"certificate"`
	History     string        `json:"history"`
	Anomaly     model.Anomaly `json:"anomaly"`
	Accepted    bool          `json:"accepted"`
	Reason      string        `json:"reason"` // why not
}

func runVerify(path, history string, asJSON bool, stdout io.Writer) error {
	c, err := readCertificate(path)
	if err != nil {
		return usagef("%v", err)
	}
	if history == "" {
		if c.History == "" {
			return usagef("%s names no history, expected --history FILE", path)
		}
		history = filepath.Join(filepath.Dir(path), filepath.FromSlash(c.History))
	}
	in, err := histories.OpenAny(history, "")
	if err != nil {
		return usagef("%v", err)
	}
	defer in.Close()
	if c.Claim == model.Liveness {
		var facts model.Facts
		if facts, err = harness.LoadFacts(filepath.Dir(history)); err == nil {
			err = verify.Recovery(c, in.Header().Run, facts.Liveness)
		}
	} else {
		err = verify.Certificate(c, in.Header().Run, in.All())
	}
	code := model.ExitHeld
	switch {
	case err == nil:
	case errors.Is(err, verify.ErrRejected):
		code = model.ExitViolated
	default:
		return usagef("%v", err)
	}
	j := judgement{Certificate: path, History: history, Anomaly: c.Anomaly, Accepted: err == nil}
	if err != nil {
		j.Reason = err.Error()
	}
	switch {
	case asJSON:
		out := json.NewEncoder(stdout)
		out.SetEscapeHTML(false)
		if err := out.Encode(j); err != nil {
			return exitError{code: model.ExitCrash, message: err.Error()}
		}
	case j.Accepted:
		fmt.Fprintf(stdout, "accepted: %s: %s\n", c.Anomaly, c.Sentence)
	default:
		fmt.Fprintf(stdout, "%s: %s\n", path, j.Reason)
	}
	if code != model.ExitHeld {
		return exitError{code: code}
	}
	return nil
}

// readCertificate reads a certificate and nothing else.
func readCertificate(path string) (c model.Certificate, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read the certificate: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: byte %d: %v, expected a certificate of version 1", path, d.InputOffset(), err)
	}
	if rest, _ := io.ReadAll(d.Buffered()); len(bytes.TrimSpace(rest)) > 0 {
		return c, fmt.Errorf("%s: byte %d: something follows the certificate, expected its end", path, d.InputOffset())
	}
	return c, nil
}
