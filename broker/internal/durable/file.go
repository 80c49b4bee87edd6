// Package durable has the few file operations that the stores need to survive a crash at any point: small files that are
// replaced atomically and carry a checksum, flushed folders, and a lock on a folder. It knows nothing of what is in the files.
package durable

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// TempSuffix ends the name of a file that is still being written. Such a file is worth nothing after a crash.
const TempSuffix = ".TEMP"

// ErrChecksum: the content of a file is not what was written. It is no torn write, because a file is renamed into place
// only after a flush.
var ErrChecksum = errors.New("checksum of the file is wrong")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLine is the length of the first line: CRC32C of the rest in hexadecimal, and a line feed.
const sumLine = 9

// WriteFile replaces the file at path by content. On success the new content is on disk, name included (S5); after a
// failure or a crash there is either the old content or the new.
func WriteFile(path string, content []byte) error {
	sum := crc32.Checksum(content, castagnoli)
	head := hex.AppendEncode(make([]byte, 0, sumLine), []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return Replace(path, append(head, '\n'), content)
}

// Replace is WriteFile without the checksum: the file holds the parts as they are.
func Replace(path string, parts ...[]byte) error {
	temp := path + TempSuffix
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := f.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReadFile gives what WriteFile wrote. Errors: fs.ErrNotExist, ErrChecksum.
func ReadFile(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) < sumLine || raw[sumLine-1] != '\n' {
		return nil, fmt.Errorf("%s: %w: it does not begin with a line of 8 hexadecimal digits", path, ErrChecksum)
	}
	content := raw[sumLine:]
	want := fmt.Appendf(nil, "%08x", crc32.Checksum(content, castagnoli))
	if !bytes.Equal(raw[:sumLine-1], want) {
		return nil, fmt.Errorf("%s: %w: it says %q, the content has %s", path, ErrChecksum, raw[:sumLine-1], want)
	}
	return content, nil
}

// Remove deletes a file, durably. A file that is not there is no error.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir flushes the names in a folder (S5).
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncFile flushes the file at path, whoever wrote it.
func SyncFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// MakeDir creates a folder and its parents, each with its name flushed in the one above (S5). A folder that is there already is no error; its name
// is flushed all the same, because whoever made it may have died before that.
func MakeDir(dir string) error {
	err := os.Mkdir(dir, 0o750)
	if errors.Is(err, fs.ErrNotExist) {
		if err := MakeDir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o750)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}
