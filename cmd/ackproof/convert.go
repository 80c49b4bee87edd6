package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

func newConvertCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "turn a history into another format",
		Long: `Reads a history of any format and writes it in another. The format of IN is guessed from its first
bytes; that of OUT is what its suffix says: .bin native, .jsonl JSON lines, .edn Jepsen's EDN. OUT
may be - for standard output, with --to.

Lossless pairs: native and JSON lines keep everything, so that converting there and back gives
the same bytes. What was read from EDN, elle's JSON or Jepsen's log has the same operations when
it is written as EDN and read again. Of a log that was recorded by ackproof EDN keeps appends with
their outcomes, records with their producers, offsets and ends, and real-time order; it has no
room for the header, the numbers of events, processes and sessions, and reads that failed.

--to porcupine writes one JSON object: the model, and the windows of the history in the form in
which porcupine decides them (of a log those whose every record is known; of objects one each).

Exit codes: 0 converted; 3 OUT could not be written; 254 wrong usage or IN is malformed, and OUT is
not touched.`,
		Example: `  ackproof convert store/latest/history.bin history.jsonl
  ackproof convert history.edn history.bin
  ackproof convert history.bin - --to edn
  ackproof convert register.edn - --to porcupine`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			format := histories.Format(to)
			if to == "" {
				if format = histories.FormatOf(args[1]); format == "" {
					return usagef("%s has no suffix of a format, expected .bin, .jsonl or .edn, or --to", args[1])
				}
			}
			if from != "" && !slices.Contains(histories.Formats(), histories.Format(from)) {
				return usagef("--from is %q, expected one of %v", from, histories.Formats())
			}
			return convert(args[0], histories.Format(from), args[1], format)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&from, "from", "", fmt.Sprintf("format of IN, one of %v (default: guessed)", histories.Formats()))
	flags.StringVar(&to, "to", "", "format of OUT: native, jsonl, edn or porcupine (default: what OUT's suffix says)")
	return cmd
}

// porcupineForm is what --to takes beside the formats of histories.
const porcupineForm = "porcupine"

func convert(in string, from histories.Format, out string, to histories.Format) (err error) {
	if to == porcupineForm {
		return exportPorcupine(in, from, out)
	}
	if _, err := histories.NewEventWriter(io.Discard, to, histories.Header{}); err != nil {
		return usagef("%v, or %s", err, porcupineForm)
	}
	file, err := histories.OpenAny(in, from)
	if err != nil {
		return usagef("%v", err)
	}
	defer file.Close()
	var events int64
	if err := writeBeside(out, func(w io.Writer) (err error) {
		events, err = histories.Convert(w, to, file)
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s events, %s to %s\n", humanize.Comma(events), file.Format(), to)
	if at, cut := file.Truncated(); cut {
		fmt.Fprintf(os.Stderr, "%s is cut off inside its last block, at byte %d: that block is left out\n", in, at)
	}
	if n := file.Noise(); n > 0 {
		fmt.Fprintf(os.Stderr, "%s lines of %s are no operations\n", humanize.Comma(n), in)
	}
	return nil
}

// writeBeside writes beside OUT and renames, so that a malformed history leaves what was there. The errors are those of the command.
func writeBeside(out string, write func(io.Writer) error) (err error) {
	target := os.Stdout
	if out != "-" {
		if target, err = os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*"); err != nil {
			return exitError{model.ExitInfrastructure, fmt.Sprintf("write %s: %v", out, err)}
		}
		defer os.Remove(target.Name()) // no longer there after the rename
		defer target.Close()
	}
	buffered := bufio.NewWriterSize(target, 256<<10)
	var exit exitError
	switch err = write(buffered); {
	case errors.As(err, &exit):
		return err
	case errors.Is(err, histories.ErrMalformed):
		return usagef("%v", err)
	case err == nil:
		err = buffered.Flush()
	}
	if err == nil && out != "-" {
		if err = target.Chmod(0o644); err == nil {
			err = target.Close()
		}
		if err == nil {
			err = os.Rename(target.Name(), out)
		}
	}
	if err != nil {
		return exitError{model.ExitInfrastructure, fmt.Sprintf("write %s: %v", out, err)}
	}
	return nil
}

// exportPorcupine writes the windows of a history in porcupine's form, judged by the contract that check would judge it by.
func exportPorcupine(in string, from histories.Format, out string) error {
	f := checkFlags{format: string(from), model: "auto", isolation: linearizability.StrictSerializable.String()}
	if from == "" {
		f.format = "auto"
	}
	s, err := survey(in, f.format)
	if err != nil {
		return malformed(err)
	}
	m, err := chooseModel(s, f)
	if err != nil {
		return err
	}
	export := struct {
		Model   string                            `json:"model"`
		Windows []linearizability.PorcupineWindow `json:"windows"`
	}{m.name, []linearizability.PorcupineWindow{}}
	if m.name == "log" {
		c, err := checkLog(s, f)
		if err != nil {
			return malformed(err)
		}
		for p := range s.partitions {
			windows, err := linearizability.PorcupineLog(c.answer, int32(p), 0, math.MaxInt64)
			if err != nil {
				continue // nobody used it
			}
			export.Windows = append(export.Windows, windows...)
		}
	} else {
		file, err := open(in, f.format)
		if err != nil {
			return malformed(err)
		}
		defer file.Close()
		if export.Windows, err = linearizability.PorcupineObjects(file.All(), m.name); err != nil {
			return usagef("%s: %v", in, err)
		}
	}
	if err := writeBeside(out, func(w io.Writer) error { return json.NewEncoder(w).Encode(export) }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s operations, %d windows, to porcupine's form\n", humanize.Comma(s.operations), len(export.Windows))
	return nil
}
