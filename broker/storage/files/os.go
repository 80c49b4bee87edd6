package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

// List implements FS.
func (OS) List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(found))
	for _, f := range found {
		e := Entry{Name: f.Name(), Dir: f.IsDir()}
		if !e.Dir {
			info, err := f.Info()
			if errors.Is(err, os.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			e.Size = info.Size()
		}
		out = append(out, e)
	}
	return out, nil
}

// Open implements FS.
func (OS) Open(path string) (Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Create implements FS. The name is not durable: the caller flushes the folder.
func (OS) Create(path string) (Writer, error) {
	return openWriter(path, os.O_CREATE|os.O_TRUNC)
}

// Edit implements FS.
func (OS) Edit(path string) (Writer, error) { return openWriter(path, 0) }

func openWriter(path string, flags int) (Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o640)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osWriter{File: f, size: size}, nil
}

// Rename implements FS. The name is not durable: the caller flushes the folder.
func (OS) Rename(from, to string) error {
	if filepath.Dir(from) != filepath.Dir(to) {
		return fmt.Errorf("rename %s to %s: both must be in one folder", from, to)
	}
	return os.Rename(from, to)
}

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

// MakeDir implements FS. The name is not durable: the caller flushes the folder.
func (OS) MakeDir(dir string) error { return os.Mkdir(dir, 0o750) }

// FlushDir implements FS.
func (OS) FlushDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Lock implements FS by an flock on the folder's file "lock". The kernel gives it back when the process dies. The file stays, because removing it would
// let two holders have two different files. Its name is not durable: after a crash nobody holds it.
func (OS) Lock(dir string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// osWriter knows where its file ends; its WriteAt, Truncate and Close are the file's.
type osWriter struct {
	*os.File
	size int64
}

// Append implements Writer.
func (w *osWriter) Append(parts ...[]byte) error {
	if len(parts) == 0 {
		return nil
	}
	if err := writeParts(w.File, w.size, parts); err != nil {
		return err
	}
	for _, p := range parts {
		w.size += int64(len(p))
	}
	return nil
}

// Truncate implements Writer.
func (w *osWriter) Truncate(size int64) error {
	if err := w.File.Truncate(size); err != nil {
		return err
	}
	w.size = size
	return nil
}

// Flush implements Writer.
func (w *osWriter) Flush() error { return w.Sync() }
