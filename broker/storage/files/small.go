package files

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
)

// TempSuffix ends the name of a file that is still being written. Such a file is worth nothing after a crash.
const TempSuffix = ".TEMP"

// ErrChecksum: the content of a small file is not what was written. It is no torn write, because a file is renamed into place only after a flush.
var ErrChecksum = errors.New("checksum of the file is wrong")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLine is the length of the first line: CRC32C of the rest in hexadecimal, and a line feed.
const sumLine = 9

// WriteSmall replaces the file at path by content, with a checksum. On success the new content is on disk, name included (S5); after a failure or a crash
// there is either the old content or the new.
func WriteSmall(fsys FS, path string, content []byte) error {
	return Replace(fsys, path, fmt.Appendf(nil, "%08x\n", crc32.Checksum(content, castagnoli)), content)
}

// Replace is WriteSmall without the checksum: the file holds the parts as they are.
func Replace(fsys FS, file string, parts ...[]byte) error {
	temp := file + TempSuffix
	w, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	if err := w.Append(parts...); err != nil {
		return errors.Join(err, w.Close())
	}
	if err := w.Flush(); err != nil {
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := fsys.Rename(temp, file); err != nil {
		return err
	}
	return fsys.FlushDir(path.Dir(file))
}

// ReadSmall gives what WriteSmall wrote. Errors: fs.ErrNotExist, ErrChecksum.
func ReadSmall(fsys FS, path string) ([]byte, error) {
	raw, err := ReadAll(fsys, path)
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

// ReadAll reads a whole file.
func ReadAll(fsys FS, path string) ([]byte, error) {
	r, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, 1<<62))
	return raw, errors.Join(err, r.Close())
}

// RemoveDurably deletes a file and flushes its folder. A file that is not there is no error, but the folder is flushed all the same: whoever removed it
// may have died before that.
func RemoveDurably(fsys FS, file string) error {
	if err := fsys.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.FlushDir(path.Dir(file))
}

// MakeDirs creates a folder and its parents, each with its name flushed in the one above (S5). The name of one that is there already is flushed all the same,
// up to the root, because whoever made it may have died before that.
func MakeDirs(fsys FS, dir string) error {
	above := path.Dir(dir)
	if above == dir {
		return nil
	}
	if err := MakeDirs(fsys, above); err != nil {
		return err
	}
	made := fsys.MakeDir(dir)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	err := fsys.FlushDir(above)
	if made != nil && errors.Is(err, fs.ErrPermission) {
		return nil // whoever may not look into the folder above has not made this one
	}
	return err
}
