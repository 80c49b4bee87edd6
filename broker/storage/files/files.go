// Package files is the little that a store asks of a file system, as an interface: the operating system has it (OS), and so has a simulated disk that
// forgets what was not flushed. Whoever writes through it can be crashed at every single operation.
//
// It promises no more than a careful reading of POSIX does: what is written lasts once the file is flushed, a name (made, renamed, removed) once its
// folder is. It knows nothing of logs. Start reading at FS; small.go has small files that are replaced as a whole.
package files

import (
	"errors"
	"io"
	"syscall"
)

// Errors that both implementations give; test with errors.Is. A missing file is fs.ErrNotExist, a name that is taken fs.ErrExist.
var (
	// ErrNoSpace: the disk is full.
	ErrNoSpace error = syscall.ENOSPC
	// ErrIO: the device failed.
	ErrIO error = syscall.EIO
	// ErrLocked: somebody else holds the lock of the folder, be it another process or another handle of this one.
	ErrLocked = errors.New("folder is locked")
)

// FS is a file system. Paths are separated by slashes. After a call that failed, what is on disk is one of the two: as before, or as after.
type FS interface {
	// List gives what is in a folder, by name.
	List(dir string) ([]Entry, error)
	// Open opens a file for reading. It can be read through this handle for as long as it is open, also when it has been removed or replaced.
	Open(path string) (Reader, error)
	// Create makes a file, or empties it, for writing.
	Create(path string) (Writer, error)
	// Edit opens a file for writing that is there already.
	Edit(path string) (Writer, error)
	// Rename gives a file another name in the same folder, at the expense of whoever has it.
	Rename(from, to string) error
	// Remove removes a file's name.
	Remove(path string) error
	// MakeDir makes a folder in one that exists.
	MakeDir(dir string) error
	// FlushDir makes the names in a folder durable (S5).
	FlushDir(dir string) error
	// Lock takes the lock of a folder until it is closed or the process ends. ErrLocked if somebody has it.
	Lock(dir string) (io.Closer, error)
}

// Entry is a name in a folder.
type Entry struct {
	Name string
	Dir  bool
	Size int64 // bytes of a file
}

// Reader is a file open for reading. The operating system's is an *os.File, so that it can be sent with sendfile.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// Writer is a file open for writing. It belongs to one goroutine at a time. After a failed call its file may hold anything between what was there
// before and what should be there now; the handle is of no more use (S3).
type Writer interface {
	// Append adds the parts, one behind the other, at the end.
	Append(parts ...[]byte) error
	// WriteAt overwrites bytes that are there.
	WriteAt(p []byte, at int64) (int, error)
	// Truncate cuts the file to so many bytes.
	Truncate(size int64) error
	// Flush makes the content and the size durable, but not the name.
	Flush() error
	Close() error
}
