//go:build !linux

package files

import "os"

// writeParts writes the parts one behind the other.
func writeParts(f *os.File, at int64, parts [][]byte) error {
	for _, p := range parts {
		if _, err := f.WriteAt(p, at); err != nil {
			return err
		}
		at += int64(len(p))
	}
	return nil
}
