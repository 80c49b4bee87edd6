// Package purity checks that the pure packages of the broker are pure: no goroutine, lock or channel, no clock, no randomness, no file or socket, no variable of
// the package that changes, and no result that depends on the order of a map. That is what lets one core run as real processes and, replayed bit for bit, inside a
// simulator. Start reading at Pure and Check.
//
// The check is of the packages' own code. It trusts the few imports that Imports names; of those etcd raft draws its election time-outs from crypto/rand, which whoever
// replays a run has to replace.
package purity

// Pure lists the pure packages, as patterns of the go command below the module's root.
var Pure = []string{"./broker/core/...", "./broker/record"}

// Imports are the packages that a pure package may import beside other pure ones: an import that is not here is a finding, so that a new way to
// reach a clock, a lock or a disk has to be looked at before it is used.
var Imports = map[string]bool{
	// values and algorithms
	"bytes": true, "cmp": true, "container/heap": true, "container/list": true, "encoding/binary": true, "encoding/hex": true, "encoding/json": true, "errors": true,
	"fmt": true, "hash": true, "hash/crc32": true, "hash/fnv": true, "iter": true, "maps": true, "math": true, "math/bits": true, "regexp": true, "slices": true, "sort": true,
	"strconv": true, "strings": true, "unicode": true, "unicode/utf8": true, "crypto/sha256": true,
	// times and durations as values; Clock lists what may not be used of it
	"time": true,
	// types that the core takes and gives
	"ackproof/broker/storage":           true,
	"github.com/twmb/franz-go/pkg/kerr": true,
	"github.com/twmb/franz-go/pkg/kmsg": true,
	"go.etcd.io/raft/v3":                true,
	"go.etcd.io/raft/v3/raftpb":         true,
	"google.golang.org/protobuf/proto":  true,
	"github.com/twmb/franz-go/pkg/kbin": true,
	// planted bugs: the constant false in a normal build
	"ackproof/broker/fault": true,
}

// Clock are the members of package time that read the clock, wait for it, or depend on the machine's time zone.
var Clock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
	"Local": true, "LoadLocation": true,
}

// MapOrder are the members of package maps whose result or calls come in the order of the map. Below slices.Sorted they are free of it.
var MapOrder = map[string]bool{"Keys": true, "Values": true, "All": true, "DeleteFunc": true, "EqualFunc": true}

// Directive is the comment that vouches for a range over a map: on the line of the loop or the one above, followed by the reason why no order can be seen.
const Directive = "//order-free:"
