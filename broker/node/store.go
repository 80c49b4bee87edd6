package node

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
	"ackproof/broker/storage/recent"
	"ackproof/broker/storage/segment"
	"ackproof/broker/storage/wal"
)

// store is the node's folder (log.dirs):
//
//	node.json      whose folder this is: cluster and node id
//	clean          written last by a clean stop, with the broker epoch; removed durably before anything else happens (R23)
//	partitions     which partitions' folders were made here
//	raft/          the control plane's log
//	<topic>-<n>/   a partition's log, with topic.id beside it (R24), and `rebuilding` while the copy is known to be incomplete
//	deleted/       partitions' folders on their way out
//	damaged/       logs that were found damaged, kept for whoever wants to look at them
type store struct {
	dir      string
	openAt   func(dir string) (storage.Log, error) // opens or makes a partition's log
	log      *slog.Logger
	previous int64 // broker epoch of the clean stop before, −1 if the last stop was not clean
	made     *made

	asked    atomic.Int64 // times that flushNames has been called
	flushing sync.Mutex   // guards flushed, and is held over the flush
	flushed  int64        // calls whose names are durable
}

const (
	ownerFile      = "node.json"
	cleanFile      = "clean"
	topicIDFile    = "topic.id"
	rebuildingFile = "rebuilding"
	// No partition's folder has one of these names, since they end in no number.
	raftFolder    = "raft"
	deletedFolder = "deleted"
	damagedFolder = "damaged"
)

type owner struct {
	Cluster string `json:"cluster"`
	Node    int32  `json:"node"`
	Store   string `json:"store"` // log.store: one store would take the other's files for none at all
}

type cleanStop struct {
	BrokerEpoch int64 `json:"broker_epoch"`
}

// openStore takes the folder, which must be new or this node's, and removes the marker of a clean stop.
func openStore(cfg Config, cacheBytes int, log *slog.Logger) (*store, error) {
	s := &store{dir: cfg.LogDir, openAt: logOpener(cfg, recent.New(cacheBytes)), log: log, previous: -1}
	if err := durable.MakeDir(s.dir); err != nil {
		return nil, fmt.Errorf("log.dirs: %w", err)
	}
	own := owner{cfg.Cluster, cfg.NodeID, cfg.Store}
	var found owner
	switch err := readJSON(s.path(ownerFile), &found); {
	case errors.Is(err, fs.ErrNotExist):
		if err := writeJSON(s.path(ownerFile), own); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case found.Cluster != own.Cluster || found.Node != own.Node:
		return nil, fmt.Errorf("log.dirs = %s belongs to node %d of cluster %q, this is node %d of cluster %q", s.dir, found.Node, found.Cluster, own.Node, own.Cluster)
	case cmp.Or(found.Store, storeWAL) != own.Store: // folders from before there was a choice do not say it
		return nil, fmt.Errorf("log.dirs = %s was written with log.store = %s, this is log.store = %s: set the former, or give an empty folder", s.dir, cmp.Or(found.Store, storeWAL), own.Store)
	}
	made, err := readMade(s.path(madeFile))
	if err != nil {
		return nil, err
	}
	s.made = made
	var stop cleanStop
	switch err := readJSON(s.path(cleanFile), &stop); {
	case err == nil:
		s.previous = stop.BrokerEpoch
	case !errors.Is(err, fs.ErrNotExist):
		log.Warn("the marker of the last clean stop is not readable; starting as after a crash", "error", err)
	}
	if err := os.Remove(s.path(cleanFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the marker of the last clean stop: %w", err)
	}
	return s, durable.SyncDir(s.dir)
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name) }

// flushNames makes the names in the node's folder durable (S5). Whoever comes while a flush is under way shares the next one with all others: a topic of a thousand partitions is not a
// thousand flushes of one folder.
func (s *store) flushNames() error {
	mine := s.asked.Add(1)
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if s.flushed >= mine {
		return nil
	}
	all := s.asked.Load()
	if err := durable.SyncDir(s.dir); err != nil {
		return err
	}
	s.flushed = all
	return nil
}

// markClean says that everything has been closed cleanly by the broker with that epoch.
func (s *store) markClean(epoch int64) error { return writeJSON(s.path(cleanFile), cleanStop{epoch}) }

// folder is a partition's folder that has no replica yet.
type folder struct {
	name    string
	topic   [16]byte
	log     storage.Log // nil if it is not open
	err     error       // why it is damaged, nil if it is not
	rebuild bool        // the copy is to be marked as incomplete
}

// partitionFolder is the name of a partition's folder, as in Kafka.
func partitionFolder(topic string, index int32) string { return fmt.Sprintf("%s-%d", topic, index) }

// isPartitionFolder tells whether a folder has such a name.
func isPartitionFolder(name string) bool {
	at := strings.LastIndexByte(name, '-')
	if at < 1 {
		return false
	}
	n, err := strconv.ParseInt(name[at+1:], 10, 32)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == name[at+1:]
}

// scan opens every partition's log, repairing what a crash left. Damage below a recovery point is in folder.err; any other failure ends the start.
func (s *store) scan() ([]*folder, error) {
	if err := os.RemoveAll(s.path(deletedFolder)); err != nil {
		s.log.Warn("could not remove deleted partitions", "error", err)
	}
	if err := s.flushNames(); err != nil { // whoever made a folder may have died before that
		return nil, fmt.Errorf("log.dirs: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("log.dirs: %w", err)
	}
	var out []*folder
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || !isPartitionFolder(name) {
			continue
		}
		f := &folder{name: name}
		id, err := s.readTopicID(name)
		if errors.Is(err, fs.ErrNotExist) {
			// The id is written before the log is made, so nothing was ever stored here.
			if err := s.discard(name, deletedFolder); err != nil {
				return out, err
			}
			continue
		}
		if err != nil {
			return out, err
		}
		f.topic = id
		f.log, f.err = s.openLog(name)
		if f.err != nil && !errors.Is(f.err, storage.ErrDamaged) {
			return out, f.err
		}
		out = append(out, f)
	}
	return out, nil
}

func (s *store) readTopicID(name string) (id [16]byte, err error) {
	path := filepath.Join(s.path(name), topicIDFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return id, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%s: expected a topic id of 32 hex digits, found %q", path, text)
	}
	copy(id[:], raw)
	return id, nil
}

// writeTopicID writes the id of the topic that a folder belongs to. The name is not durable: opening the log, which comes next, flushes the folder before it puts anything there.
func (s *store) writeTopicID(name string, topic [16]byte) error {
	path := filepath.Join(s.path(name), topicIDFile)
	temp := path + durable.TempSuffix
	if err := os.WriteFile(temp, []byte(hex.EncodeToString(topic[:])+"\n"), 0o640); err != nil {
		return err
	}
	if err := durable.SyncFile(temp); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func (s *store) openLog(name string) (storage.Log, error) { return s.openAt(s.path(name)) }

// What log.store can be.
const (
	storeSegment = "segment"
	storeWAL     = "wal"
)

// logOpener gives the function that opens a partition's log in the way that the configuration asks for.
func logOpener(cfg Config, cache *recent.Cache) func(dir string) (storage.Log, error) {
	return func(dir string) (storage.Log, error) {
		if cfg.Store == storeSegment {
			l, err := segment.Open(dir, segment.Options{Made: true, SegmentBytes: cfg.SegmentBytes, IndexBytes: cfg.IndexBytes, Cache: cache})
			if err != nil {
				return nil, err // not l: a nil pointer in an interface is not nil
			}
			return l, nil
		}
		l, err := wal.Open(dir, wal.Options{SegmentBytes: int(cfg.SegmentBytes), Cache: cache})
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

// create makes a partition's folder and opens an empty log in it. The topic id is durable before the log exists (R24); rebuilding marks the copy as
// incomplete from its first moment on.
func (s *store) create(name string, topic [16]byte, rebuilding bool) (storage.Log, error) {
	if err := os.MkdirAll(s.path(name), 0o755); err != nil {
		return nil, err
	}
	if rebuilding {
		if err := durable.Replace(filepath.Join(s.path(name), rebuildingFile), []byte("until the replica is in sync again, it must not lead\n")); err != nil {
			return nil, err
		}
	}
	if err := s.writeTopicID(name, topic); err != nil {
		return nil, err
	}
	if err := s.flushNames(); err != nil {
		return nil, err
	}
	return s.openLog(name)
}

// rebuilding tells whether the copy in this folder is known to be incomplete.
func (s *store) rebuilding(name string) bool {
	_, err := os.Stat(filepath.Join(s.path(name), rebuildingFile))
	return err == nil
}

// rebuilt removes that mark durably.
func (s *store) rebuilt(name string) error {
	if err := os.Remove(filepath.Join(s.path(name), rebuildingFile)); err != nil {
		return err
	}
	return durable.SyncDir(s.path(name))
}

// discard moves a partition's folder out of the way: into deletedFolder, where it is removed, or into damagedFolder, where it stays.
func (s *store) discard(name, where string) error {
	if err := os.MkdirAll(s.path(where), 0o755); err != nil {
		return err
	}
	taken, err := os.ReadDir(s.path(where))
	if err != nil {
		return err
	}
	for k := 1; ; k++ {
		to := fmt.Sprintf("%s.%d", name, k)
		if slices.ContainsFunc(taken, func(e os.DirEntry) bool { return e.Name() == to }) {
			continue
		}
		to = filepath.Join(s.path(where), to)
		if err := os.Rename(s.path(name), to); err != nil {
			return err
		}
		if err := errors.Join(durable.SyncDir(s.path(where)), durable.SyncDir(s.dir)); err != nil {
			return err
		}
		if where == deletedFolder {
			return os.RemoveAll(to)
		}
		s.log.Warn("folder put aside", "folder", to)
		return nil
	}
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.Replace(path, append(text, '\n'))
}
