package vdso

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Clock is the wall clock of one process, in the hands of somebody else. It is not for several goroutines at once.
type Clock struct {
	pid     int
	mem     *os.File
	patch   uint64   // address of the patch
	entries []uint64 // addresses of the functions, 0 for one that this vDSO has not
	code    []byte
	starts  [len(functions)]int
}

// Attach takes hold of the clock of a process, which goes on telling the true time until Set. Every thread of the process has to stand still (SIGSTOP) until Attach
// has returned; otherwise the error is ErrRuns. A clock that is held already is taken over, so that it does not matter who has attached before.
//
// What cannot be seen is a signal handler that has interrupted a thread in the first five bytes of one of the functions and runs at this moment: that thread would
// come back into the middle of an instruction.
func Attach(pid int) (*Clock, error) {
	c, err := open(pid)
	if err != nil {
		return nil, fmt.Errorf("take hold of the clock of pid %d: %w", pid, err)
	}
	if err := c.install(); err != nil {
		c.mem.Close()
		return nil, fmt.Errorf("take hold of the clock of pid %d: %w", pid, err)
	}
	return c, nil
}

// open finds the functions and the room for the patch.
func open(pid int) (*Clock, error) {
	low, high, err := mapping(pid)
	if err != nil {
		return nil, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c := &Clock{pid: pid, mem: mem}
	c.code, c.starts = program()
	image := make([]byte, high-low)
	if _, err := io.ReadFull(io.NewSectionReader(mem, int64(low), int64(len(image))), image); err != nil {
		mem.Close()
		return nil, fmt.Errorf("read the vDSO: %w", err)
	}
	room, entries, err := layout(image, atCode+len(c.code))
	if err != nil {
		mem.Close()
		return nil, err
	}
	c.patch = low + uint64(room)
	for _, e := range entries {
		if e != 0 {
			e += low
		}
		c.entries = append(c.entries, e)
	}
	return c, nil
}

// mapping is where the vDSO of a process lies.
func mapping(pid int) (low, high uint64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &low, &high); err != nil || high <= low || high-low > 1<<20 {
				return 0, 0, fmt.Errorf("the line of the vDSO in its map is %q, expected a range of addresses", line)
			}
			return low, high, nil
		}
	}
	return 0, 0, errors.New("it has no vDSO")
}

// layout finds in the image of a vDSO the functions, as offsets, and room for so many bytes: behind the image, where the last page is empty.
func layout(image []byte, need int) (room int, entries []uint64, err error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, nil, fmt.Errorf("read the vDSO: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, nil, fmt.Errorf("read the functions of the vDSO: %w", err)
	}
	entries = make([]uint64, len(functions))
	for i, name := range functions {
		for _, s := range symbols {
			if s.Name == name && s.Size >= jumpBytes && s.Value < uint64(len(image))-jumpBytes {
				entries[i] = s.Value
			}
		}
	}
	if entries[0] == 0 {
		return 0, nil, fmt.Errorf("the vDSO has no function %s", functions[0])
	}
	// The section headers come last in the file; their end is the image's.
	end := binary.LittleEndian.Uint64(image[0x28:]) + uint64(binary.LittleEndian.Uint16(image[0x3a:]))*uint64(binary.LittleEndian.Uint16(image[0x3c:]))
	for _, p := range f.Progs {
		end = max(end, p.Off+p.Filesz)
	}
	room = int(min(end, uint64(len(image)))+63) &^ 63
	if room+need > len(image) {
		return 0, nil, fmt.Errorf("the vDSO leaves %d bytes free, the patch takes %d", max(0, len(image)-room), need)
	}
	if patch := image[room : room+need]; !bytes.Equal(patch[atMagic:atSaved], []byte(magic)) && len(bytes.Trim(patch, "\x00")) > 0 {
		return 0, nil, errors.New("something is behind the image of the vDSO, where nothing should be")
	}
	return room, entries, nil
}

// install writes the patch and leads the functions to it.
func (c *Clock) install() error {
	if c.holds() == nil {
		return nil
	}
	if err := c.still(); err != nil {
		return err
	}
	before := make([]byte, atCode)
	if _, err := c.mem.ReadAt(before, int64(c.patch)); err != nil {
		return fmt.Errorf("read the room for the patch: %w", err)
	}
	patch := make([]byte, atCode, atCode+len(c.code))
	binary.LittleEndian.PutUint64(patch[atCurrent:], atSlotA)
	copy(patch[atMagic:], magic)
	for i, at := range c.entries {
		if at == 0 {
			continue
		}
		saved := patch[atSaved+8*i : atSaved+8*i+jumpBytes]
		if _, err := c.mem.ReadAt(saved, int64(at)); err != nil {
			return fmt.Errorf("read %s: %w", functions[i], err)
		}
		if bytes.Equal(saved, jump(at, c.patch+uint64(c.starts[i]))) { // an earlier hold ended half way
			copy(saved, before[atSaved+8*i:])
		}
	}
	if err := c.write(c.patch, append(patch, c.code...)); err != nil {
		return err
	}
	for i, at := range c.entries {
		if at == 0 {
			continue
		}
		if err := c.write(at, jump(at, c.patch+uint64(c.starts[i]))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Clock) write(at uint64, b []byte) error {
	if _, err := c.mem.WriteAt(b, int64(at)); err != nil {
		return fmt.Errorf("write to the vDSO: %w", err)
	}
	return nil
}

// still: every thread stands still, and none in the bytes that a jump replaces.
func (c *Clock) still() error {
	dir := fmt.Sprintf("/proc/%d/task", c.pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, t := range threads {
		stat, err := os.ReadFile(dir + "/" + t.Name() + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return err
		}
		// The name in brackets may hold anything; the state is behind the last bracket.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "t") && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X") {
			return fmt.Errorf("%w: thread %s is in state %.1s, expected T", ErrRuns, t.Name(), state)
		}
		where, err := os.ReadFile(dir + "/" + t.Name() + "/syscall")
		if err != nil {
			if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") || errors.Is(err, syscall.ESRCH) {
				continue
			}
			return err
		}
		fields := strings.Fields(string(where))
		if len(fields) == 0 {
			continue
		}
		at, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
		if err != nil {
			return fmt.Errorf("%w: thread %s is %q, expected an address", ErrRuns, t.Name(), strings.TrimSpace(string(where)))
		}
		for _, e := range c.entries {
			if e != 0 && at > e && at < e+jumpBytes {
				return ErrInside
			}
		}
	}
	return nil
}

// Set makes the clock wrong in this way, from one reading to the next. The process may run.
func (c *Clock) Set(s Setting) error {
	if err := s.validate(); err != nil {
		return err
	}
	var current [8]byte
	if _, err := c.mem.ReadAt(current[:], int64(c.patch+atCurrent)); err != nil {
		return fmt.Errorf("set the clock of pid %d: %w", c.pid, err)
	}
	slot := uint64(atSlotB)
	if binary.LittleEndian.Uint64(current[:]) == atSlotB {
		slot = atSlotA
	}
	if err := c.write(c.patch+slot, words(int64(s.Offset), time.Now().UnixNano(), s.DriftPPM)); err != nil {
		return fmt.Errorf("set the clock of pid %d: %w", c.pid, err)
	}
	if err := c.write(c.patch+atCurrent, binary.LittleEndian.AppendUint64(nil, slot)); err != nil {
		return fmt.Errorf("set the clock of pid %d: %w", c.pid, err)
	}
	return nil
}

// Setting reads back, from the process, how its clock is wrong. It fails if the process does not ask the patch for the time any more.
func (c *Clock) Setting() (Setting, error) {
	if err := c.holds(); err != nil {
		return Setting{}, fmt.Errorf("read the clock of pid %d: %w", c.pid, err)
	}
	data := make([]byte, atMagic)
	if _, err := c.mem.ReadAt(data, int64(c.patch)); err != nil {
		return Setting{}, fmt.Errorf("read the clock of pid %d: %w", c.pid, err)
	}
	slot := binary.LittleEndian.Uint64(data[atCurrent:])
	if slot != atSlotA && slot != atSlotB {
		return Setting{}, fmt.Errorf("read the clock of pid %d: the slot is %d, expected %d or %d", c.pid, slot, atSlotA, atSlotB)
	}
	word := func(i uint64) int64 { return int64(binary.LittleEndian.Uint64(data[slot+8*i:])) }
	return Setting{Offset: time.Duration(word(0)), DriftPPM: word(2)}, nil
}

// holds: the patch is whole and every function leads to it.
func (c *Clock) holds() error {
	patch := make([]byte, atCode+len(c.code))
	if _, err := c.mem.ReadAt(patch, int64(c.patch)); err != nil {
		return err
	}
	if string(patch[atMagic:atSaved]) != magic || !bytes.Equal(patch[atCode:], c.code) {
		return errors.New("there is no patch")
	}
	for i, at := range c.entries {
		if at == 0 {
			continue
		}
		var have [jumpBytes]byte
		if _, err := c.mem.ReadAt(have[:], int64(at)); err != nil {
			return err
		}
		if !bytes.Equal(have[:], jump(at, c.patch+uint64(c.starts[i]))) {
			return fmt.Errorf("%s does not lead to the patch", functions[i])
		}
	}
	return nil
}

// Detach gives the process its true clock and its own code back, and ends the hold. Every thread has to stand still; if one does not, the clock is true, the code
// and the hold stay, and the error is ErrRuns or ErrInside. What stays in any case is the patch itself, since a thread may be in it.
func (c *Clock) Detach() error {
	if err := c.Set(Setting{}); err != nil {
		return err
	}
	if err := c.still(); err != nil {
		return fmt.Errorf("let go of the clock of pid %d: %w", c.pid, err)
	}
	saved := make([]byte, 8*len(c.entries))
	if _, err := c.mem.ReadAt(saved, int64(c.patch+atSaved)); err != nil {
		return fmt.Errorf("let go of the clock of pid %d: %w", c.pid, err)
	}
	for i, at := range c.entries {
		if at == 0 {
			continue
		}
		if err := c.write(at, saved[8*i:8*i+jumpBytes]); err != nil {
			return fmt.Errorf("let go of the clock of pid %d: %w", c.pid, err)
		}
	}
	return c.mem.Close()
}

// Close ends the hold and changes nothing: for a process that is gone.
func (c *Clock) Close() error { return c.mem.Close() }

// Available tells whether the clocks of this process's children can be made wrong, and how, or why not.
func Available() (ok bool, how string) {
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		// 0: any process of the same user, 1: descendants; 2 takes CAP_SYS_PTRACE, 3 forbids it.
		if s := strings.TrimSpace(string(scope)); s > "1" && (s != "2" || os.Geteuid() != 0) {
			return false, "kernel.yama.ptrace_scope is " + s + ", expected 0 or 1, to write to the memory of a child"
		}
	}
	c, err := open(os.Getpid())
	if err != nil {
		return false, err.Error()
	}
	defer c.mem.Close()
	// A zero where there is one: the same write that a patch takes, without a change.
	if err := c.write(c.patch+uint64(atCode+len(c.code)-1), []byte{0}); err != nil {
		return false, err.Error() + " (proc_mem.force_override in the kernel's command line forbids it?)"
	}
	return true, "the process's own copy of the vDSO, written through /proc/PID/mem; for programs that ask the vDSO for the time"
}
