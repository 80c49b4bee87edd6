package controller

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/fault"
)

// maxRequestBytes bounds the request in one entry of the raft log.
const maxRequestBytes = 1 << 20

// entry is what the raft log holds: a request in Kafka's own encoding, and what applying it needs besides. Everything that decides the outcome is in the
// entry or in the image that it is applied to, so that all voters come to the same image whatever their own configuration.
type entry struct {
	number  uint64 // of the proposal, counted by the proposing controller within its term; 0: the controller's own
	flags   flags
	request kmsg.Request
}

type flags uint8

const (
	singleCopy      flags = 1 << iota // the proposing controller accepts topics with one replica
	electAnyReplica                   // the planted bugs that are on at the proposing controller, see planted
	keepRestarted
	keepEligible
	keepLost
	allFlags = singleCopy | electAnyReplica | keepRestarted | keepEligible | keepLost
)

// planted are the bugs in what entries do to the image. They travel with the entry, so that all voters go wrong in the same way.
func planted() (f flags) {
	if fault.On(fault.UncleanElection) {
		f |= electAnyReplica
	}
	if fault.On(fault.RestartedStaysInSync) {
		f |= keepRestarted
	}
	if fault.On(fault.ELRNotEmptied) {
		f |= keepEligible
	}
	if fault.On(fault.UncleanStopStaysEligible) {
		f |= keepLost
	}
	return f
}

// The encoding: version 1, flags, number (8), API key (2), API version (2), body. Big endian.
const (
	entryVersion = 1
	entryHeader  = 1 + 1 + 8 + 2 + 2
)

func (e entry) encode() []byte {
	b := append(make([]byte, 0, 256), entryVersion, byte(e.flags))
	b = binary.BigEndian.AppendUint64(b, e.number)
	b = binary.BigEndian.AppendUint16(b, uint16(e.request.Key()))
	b = binary.BigEndian.AppendUint16(b, uint16(e.request.GetVersion()))
	return e.request.AppendTo(b)
}

func decodeEntry(b []byte) (entry, error) {
	if len(b) < entryHeader || b[0] != entryVersion || flags(b[1])&^allFlags != 0 {
		return entry{}, fmt.Errorf("metadata entry of %d bytes: bad header, want version %d and %d bytes", len(b), entryVersion, entryHeader)
	}
	e := entry{flags: flags(b[1]), number: binary.BigEndian.Uint64(b[2:])}
	key, version := int16(binary.BigEndian.Uint16(b[10:])), int16(binary.BigEndian.Uint16(b[12:]))
	e.request = kmsg.RequestForKey(key)
	if e.request == nil || version < 0 || version > e.request.MaxVersion() {
		return entry{}, fmt.Errorf("metadata entry: API %d version %d, which this broker does not know", key, version)
	}
	e.request.SetVersion(version)
	if err := e.request.ReadFrom(b[entryHeader:]); err != nil {
		return entry{}, fmt.Errorf("metadata entry: API %d version %d: %w", key, version, err)
	}
	return e, nil
}
