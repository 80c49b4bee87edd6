// Package wire speaks Kafka's protocol: frames, request headers, the table of APIs with the versions that are served, ordered and
// pipelined connections on the server's side, and a plain client for the traffic between brokers. The messages themselves are
// kmsg's structs; only Fetch responses are encoded here, so that record bytes go from the log to the socket without a copy.
//
// It must not know what a request means: topics, partitions, leaders and logs belong to the node, which gives a Handler. Start
// reading at API (the table), then Server; each API has a file with its number, its versions and their history.
package wire

import (
	"errors"
	"fmt"
)

// DefaultMaxFrameBytes is Kafka's default for socket.request.max.bytes.
const DefaultMaxFrameBytes = 100 << 20

// Errors about what a peer sent; test with errors.Is. Each ends its connection.
var (
	// ErrFrameSize: the length prefix is negative, too small for a header, or above the limit.
	ErrFrameSize = errors.New("bad frame size")
	// ErrUnknownAPI: an api key that is not in the table.
	ErrUnknownAPI = errors.New("unknown api key")
	// ErrVersion: a version of a known API that is not served. Kafka closes the connection too.
	ErrVersion = errors.New("unsupported api version")
	// ErrMalformed: header or body do not parse.
	ErrMalformed = errors.New("malformed request")
)

// unsupported is the error for a version outside of an API's range.
func unsupported(a *API, version int16) error {
	return fmt.Errorf("%w: %s (api key %d) v%d, served are v%d to v%d", ErrVersion, a.Name, a.Key, version, a.Min, a.Max)
}
