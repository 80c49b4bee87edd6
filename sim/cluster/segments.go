package cluster

import (
	"errors"
	"io/fs"
	"math/rand/v2"

	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/segment"
	"ackproof/sim/disk"
)

// segments is a Disk of logs of package segment on a simulated disk: the recovery code of the real broker.
type segments struct {
	bad
	disk    *disk.Disk
	process files.FS // nil while no process uses it
	bytes   int64
}

// Segments makes disks of logs in Kafka's layout, whose segments have so many bytes. At a loss of power each sector and each name that was not flushed may be
// lost, apart from the others.
func Segments(segmentBytes int64) func(int) Disk {
	return func(int) Disk {
		s := &segments{disk: disk.New(), bytes: segmentBytes}
		s.disk.Fault = func(op disk.Op) disk.Fault {
			if op.Kind == disk.Read {
				return disk.Fault{}
			}
			flush := op.Kind == disk.Flush
			return disk.Fault{Err: s.next(flush), Drop: flush}
		}
		return s
	}
}

func (s *segments) fs() files.FS {
	if s.process == nil {
		s.process = s.disk.Mount()
	}
	return s.process
}

func (s *segments) Open(folder string) (storage.Log, error) {
	l, err := segment.Open("/"+folder, segment.Options{FS: s.fs(), SegmentBytes: s.bytes})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s *segments) Folders() []string {
	list, err := s.fs().List("/")
	if err != nil {
		panic("a simulated disk has lost its root folder: " + err.Error())
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out
}

func (s *segments) Remove(folder string) {
	failing := s.bad
	s.bad = bad{}
	defer func() { s.bad = failing }()
	if err := removeAll(s.fs(), "/"+folder); err != nil {
		panic("remove a folder of a simulated disk that has no faults: " + err.Error())
	}
}

func removeAll(fsys files.FS, dir string) error {
	list, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		err = errors.Join(err, fsys.Remove(dir+"/"+e.Name))
	}
	return errors.Join(err, fsys.Remove(dir), fsys.FlushDir("/"))
}

func (s *segments) Crash() {
	s.disk.Kill()
	s.process = nil
}

func (s *segments) PowerLoss(r *rand.Rand) {
	s.disk.PowerLoss(disk.Random(r))
	s.process = nil
}
