package wire

import (
	"fmt"
	"sort"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// API is one kind of request and the versions of it that are served.
type API struct {
	Name string
	Key  int16
	// Min and Max are the versions that are served, both included.
	Min, Max int16
	// Advertise is the lowest version that ApiVersions names; it differs from Min for Produce only.
	Advertise int16
	// Internal APIs are spoken between brokers and are not advertised to clients.
	Internal bool
	// New makes an empty request.
	New func() kmsg.Request
}

// of describes the API of request Q.
func of[Q any, P interface {
	*Q
	kmsg.Request
}](name string, from, to int16) API {
	newRequest := func() kmsg.Request { return P(new(Q)) }
	return API{Name: name, Key: newRequest().Key(), Min: from, Max: to, Advertise: from, New: newRequest}
}

// internal marks an API as spoken between brokers only.
func internal(a API) API {
	a.Internal = true
	return a
}

// Table finds APIs by key. It is immutable after NewTable.
type Table struct {
	byKey map[int16]*API
	keys  []int16
}

// APIs lists every API of this package, in the order of the keys.
func APIs() []API {
	return []API{
		produceAPI(), fetchAPI(), listOffsetsAPI(), metadataAPI(), offsetCommitAPI(), offsetFetchAPI(), findCoordinatorAPI(), joinGroupAPI(),
		heartbeatAPI(), leaveGroupAPI(), syncGroupAPI(), describeGroupsAPI(), listGroupsAPI(), apiVersionsAPI(), createTopicsAPI(), deleteTopicsAPI(), deleteRecordsAPI(),
		initProducerIDAPI(), offsetForLeaderEpochAPI(), describeConfigsAPI(), alterConfigsAPI(), createPartitionsAPI(), deleteGroupsAPI(), electLeadersAPI(), incrementalAlterConfigsAPI(),
		offsetDeleteAPI(), describeQuorumAPI(), alterPartitionAPI(), envelopeAPI(), describeClusterAPI(), brokerRegistrationAPI(), brokerHeartbeatAPI(),
		allocateProducerIDsAPI(), consumerGroupHeartbeatAPI(), consumerGroupDescribeAPI(), describeTopicPartitionsAPI(), raftAPI(),
	}
}

// NewTable makes a table; two APIs with one key, or a range that kmsg does not know, are the programmer's mistake and panic.
func NewTable(apis []API) *Table {
	t := &Table{byKey: make(map[int16]*API, len(apis))}
	for i := range apis {
		a := &apis[i]
		if _, twice := t.byKey[a.Key]; twice || a.Min > a.Max || a.Max > a.New().MaxVersion() {
			panic(fmt.Sprintf("wire: bad entry %s (api key %d, v%d to v%d) in the table of APIs", a.Name, a.Key, a.Min, a.Max))
		}
		t.byKey[a.Key] = a
		t.keys = append(t.keys, a.Key)
	}
	sort.Slice(t.keys, func(i, j int) bool { return t.keys[i] < t.keys[j] })
	return t
}

// Find returns the API with that key, nil if there is none.
func (t *Table) Find(key int16) *API { return t.byKey[key] }
