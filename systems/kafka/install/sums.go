package install

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumFiles hold the jars of each version that can be fetched, as sha256sum writes them: what Maven Central gave for the coordinates of coordinates.
//
//go:embed sums
var sumFiles embed.FS

type sum struct{ sha256, name string }

// Versions are those that can be fetched, the newest first.
func Versions() []string {
	entries, err := sumFiles.ReadDir("sums")
	if err != nil {
		return nil // it is part of the program
	}
	var out []string
	for _, e := range slices.Backward(entries) {
		out = append(out, e.Name())
	}
	return out
}

func sumsOf(version string) ([]sum, error) {
	if !slices.Contains(Versions(), version) {
		return nil, fmt.Errorf("version %q of Kafka cannot be fetched, expected one of: %s; any other one as an own installation (--path)", version, strings.Join(Versions(), ", "))
	}
	text, err := sumFiles.ReadFile("sums/" + version)
	if err != nil {
		return nil, err
	}
	var out []sum
	for line := range strings.Lines(string(text)) {
		hash, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || len(hash) != hex.EncodedLen(sha256.Size) || name != filepath.Base(name) {
			return nil, fmt.Errorf("sums of Kafka %s: %q, expected a checksum and the name of a jar", version, line)
		}
		out = append(out, sum{hash, name})
	}
	return out, nil
}

// verify compares the jars in a folder with what they should be. The error names the first that differs.
func verify(dir string, sums []sum) error {
	for _, s := range sums {
		got, err := hashOf(filepath.Join(dir, s.name))
		if err != nil {
			return fmt.Errorf("verify %s: %w", s.name, err)
		}
		if got != s.sha256 {
			return fmt.Errorf("verify %s: its SHA-256 is %s, expected %s: it is not the file that this version of ackproof knows", s.name, got, s.sha256)
		}
	}
	return nil
}

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
