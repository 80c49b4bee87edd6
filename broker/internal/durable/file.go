// Package durable is package files on the operating system, for the stores that know no other: small files that are replaced atomically and carry a
// checksum, flushed folders, and a lock on a folder. It knows nothing of what is in the files.
package durable

import (
	"errors"
	"io"
	"os"

	"ackproof/broker/storage/files"
)

// TempSuffix ends the name of a file that is still being written. Such a file is worth nothing after a crash.
const TempSuffix = files.TempSuffix

// Errors of this package.
var (
	// ErrChecksum: the content of a file is not what was written. It is no torn write, because a file is renamed into place
	// only after a flush.
	ErrChecksum = files.ErrChecksum
	// ErrLocked: somebody else holds the lock of the folder, be it another process or another handle of this one.
	ErrLocked = files.ErrLocked
)

// WriteFile replaces the file at path by content. On success the new content is on disk, name included (S5); after a
// failure or a crash there is either the old content or the new.
func WriteFile(path string, content []byte) error { return files.WriteSmall(files.OS{}, path, content) }

// Replace is WriteFile without the checksum: the file holds the parts as they are.
func Replace(path string, parts ...[]byte) error { return files.Replace(files.OS{}, path, parts...) }

// ReadFile gives what WriteFile wrote. Errors: fs.ErrNotExist, ErrChecksum.
func ReadFile(path string) ([]byte, error) { return files.ReadSmall(files.OS{}, path) }

// Remove deletes a file, durably. A file that is not there is no error.
func Remove(path string) error { return files.RemoveDurably(files.OS{}, path) }

// SyncDir flushes the names in a folder (S5).
func SyncDir(dir string) error { return files.OS{}.FlushDir(dir) }

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
func MakeDir(dir string) error { return files.MakeDirs(files.OS{}, dir) }

// Lock takes the lock of a folder; closing what it gives, or the end of the process, gives it back.
func Lock(dir string) (io.Closer, error) { return files.OS{}.Lock(dir) }
