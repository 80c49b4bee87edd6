package lossy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// programs run on the disk. The first argument of each is the folder where it sees it.
var programs = map[string]func([]string) error{
	"append": appending, "read": reading, "script": script, "descriptors": descriptors,
}

// record is the number n as a record of 100 to 1,100 bytes, which ends with a new line.
func record(n int) []byte {
	return append(bytes.Repeat([]byte(fmt.Sprintf("%08d ", n)), 12+n*37%110), '\n')
}

// records is how many there are; the last five are not flushed.
const records = 124

// appending appends records, flushes after every seventh, and says so; after the last one it waits for its end. How it flushes is the second argument.
func appending(args []string) error {
	how, flags := args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND
	if how == "dsync" {
		flags |= unix.O_DSYNC
	}
	f, err := os.OpenFile(filepath.Join(args[0], "log"), flags, 0o644)
	if err != nil {
		return err
	}
	if err := flushFolder(args[0]); err != nil {
		return err
	}
	for n := range records {
		if _, err := f.Write(record(n)); err != nil {
			return err
		}
		if n%7 != 6 && how != "dsync" {
			continue
		}
		switch how {
		case "fsync":
			err = f.Sync()
		case "fdatasync":
			err = syscall.Fdatasync(int(f.Fd()))
		}
		if err != nil {
			return err
		}
		fmt.Println("acked", n)
	}
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// reading tells how many whole records a file begins with, and how many bytes follow them.
func reading(args []string) error {
	b, err := os.ReadFile(filepath.Join(args[0], "log"))
	if err != nil {
		return err
	}
	n := 0
	for bytes.HasPrefix(b, record(n)) {
		b = b[len(record(n)):]
		n++
	}
	fmt.Println(n, len(b))
	return nil
}

func flushFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// script does what its arguments say, one after the other, and says what comes out of it.
func script(args []string) error {
	dir, files := args[0], map[string]*os.File{}
	at := func(name string) string { return filepath.Join(dir, name) }
	file := func(name string) (*os.File, error) {
		if files[name] == nil {
			f, err := os.OpenFile(at(name), os.O_RDWR|os.O_CREATE, 0o644)
			if err != nil {
				return nil, err
			}
			files[name] = f
		}
		return files[name], nil
	}
	say := func(line string, err error) {
		var e syscall.Errno
		switch {
		case err == nil:
			fmt.Println(line)
		case errorsAs(err, &e):
			fmt.Println(unix.ErrnoName(e))
		default:
			fmt.Println(err)
		}
	}
	for _, line := range args[1:] {
		w := strings.Fields(line)
		switch w[0] {
		case "write": // NAME OFFSET TEXT
			f, err := file(w[1])
			if err == nil {
				_, err = f.WriteAt([]byte(w[3]), int64(atoi(w[2])))
			}
			say("wrote", err)
		case "fill": // NAME OFFSET LENGTH LETTER
			f, err := file(w[1])
			if err == nil {
				_, err = f.WriteAt(bytes.Repeat([]byte(w[4]), atoi(w[3])), int64(atoi(w[2])))
			}
			say("wrote", err)
		case "flush":
			f, err := file(w[1])
			if err == nil {
				err = f.Sync()
			}
			say("flushed", err)
		case "flushdir":
			say("flushed", flushFolder(at(w[1])))
		case "cut":
			say("cut", os.Truncate(at(w[1]), int64(atoi(w[2]))))
		case "move":
			say("moved", os.Rename(at(w[1]), at(w[2])))
		case "remove":
			say("removed", os.Remove(at(w[1])))
		case "mkdir":
			say("made", os.Mkdir(at(w[1]), 0o755))
		case "link":
			say("linked", os.Link(at(w[1]), at(w[2])))
		case "symlink":
			say("linked", os.Symlink(w[1], at(w[2])))
		case "read":
			b, err := os.ReadFile(at(w[1]))
			say(w[1]+"="+squeeze(b), err)
		case "size":
			info, err := os.Stat(at(w[1]))
			if err == nil {
				fmt.Println(info.Size())
			} else {
				say("", err)
			}
		case "list":
			entries, err := os.ReadDir(at(w[1]))
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			say(strings.Join(names, " "), err)
		case "map": // NAME LENGTH LETTER FLUSHED: the letter goes into a mapping, of which so many bytes are flushed
			say("mapped", mapped(at(w[1]), atoi(w[2]), w[3][0], atoi(w[4])))
		case "copy": // by copy_file_range
			say("copied", copied(at(w[1]), at(w[2])))
		case "wait":
			fmt.Println("waiting")
			io.Copy(io.Discard, os.Stdin)
		default:
			return fmt.Errorf("no step %q", line)
		}
	}
	return nil
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func errorsAs(err error, e *syscall.Errno) bool {
	for err != nil {
		if n, ok := err.(syscall.Errno); ok {
			*e = n
			return true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}

// squeeze shows runs of the same letter as its number.
func squeeze(b []byte) string {
	var out strings.Builder
	for i := 0; i < len(b); {
		j := i
		for j < len(b) && b[j] == b[i] {
			j++
		}
		if c := string(b[i]); b[i] == 0 {
			fmt.Fprintf(&out, "%d×0", j-i)
		} else if j-i > 3 {
			fmt.Fprintf(&out, "%d×%s", j-i, c)
		} else {
			out.WriteString(strings.Repeat(c, j-i))
		}
		i = j
	}
	return out.String()
}

func mapped(name string, length int, letter byte, flushed int) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := f.Truncate(int64(length)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for i := range b[:flushed] {
		b[i] = letter
	}
	if err := unix.Msync(b, unix.MS_SYNC); err != nil {
		return err
	}
	for i := range b {
		b[i] = letter
	}
	return nil
}

func copied(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	n, err := unix.CopyFileRange(int(in.Fd()), nil, int(out.Fd()), nil, int(info.Size()), 0)
	if err == nil && n != int(info.Size()) {
		err = fmt.Errorf("%d bytes copied", n)
	}
	return err
}

// descriptors lists where the open descriptors of the program lead.
func descriptors([]string) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			fmt.Println(to)
		}
	}
	return nil
}
