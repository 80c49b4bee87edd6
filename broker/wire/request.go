package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Request is one parsed request. Byte fields of Body alias the frame.
type Request struct {
	API         *API
	Version     int16
	Correlation int32
	ClientID    string // "" if null
	Host        string // the peer's address in Kafka's form, "/127.0.0.1"; set by the Server
	Body        kmsg.Request
	Frame       *Frame // the memory that Body's byte fields alias, nil if nobody counts its holders; the Server lets go of it when Handle has returned
	// TooNew is set for an ApiVersions request above the served range only: its body was not parsed, and the answer is version 0 with
	// UNSUPPORTED_VERSION (KIP-511).
	TooNew bool
}

// Parse reads the header and body of a frame (without its length prefix). Errors: ErrUnknownAPI, ErrVersion, ErrMalformed.
//
// The version is checked before the body is read, because kmsg parses an unknown version with the newest layout it knows.
func (t *Table) Parse(frame []byte) (Request, error) {
	r := kbin.Reader{Src: frame}
	key, version, correlation := r.Int16(), r.Int16(), r.Int32()
	if !r.Ok() {
		return Request{}, fmt.Errorf("%w: %d bytes are too short for a header", ErrMalformed, len(frame))
	}
	api := t.Find(key)
	if api == nil {
		return Request{}, fmt.Errorf("%w: %d v%d", ErrUnknownAPI, key, version)
	}
	q := Request{API: api, Version: version, Correlation: correlation}
	if version < api.Min || version > api.Max {
		if key != ApiVersionsKey || version < 0 {
			return q, unsupported(api, version)
		}
		q.TooNew, q.Version, q.Body = true, 0, api.New()
		return q, nil
	}
	// The client id is a non-compact string in header v1 and v2; v2 only adds the tags behind it.
	if id := r.NullableString(); id != nil {
		q.ClientID = *id
	}
	q.Body = api.New()
	q.Body.SetVersion(version)
	if q.Body.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	if err := r.Complete(); err != nil {
		return q, fmt.Errorf("%w: header of %s v%d: %v", ErrMalformed, api.Name, version, err)
	}
	if err := q.Body.ReadFrom(r.Src); err != nil {
		return q, fmt.Errorf("%w: body of %s v%d, %d bytes: %v", ErrMalformed, api.Name, version, len(r.Src), err)
	}
	return q, nil
}

// AppendRequest appends the frame of a request: length, header and body.
func AppendRequest(dst []byte, correlation int32, clientID string, body kmsg.Request) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = kbin.AppendInt16(dst, body.Key())
	dst = kbin.AppendInt16(dst, body.GetVersion())
	dst = kbin.AppendInt32(dst, correlation)
	dst = kbin.AppendNullableString(dst, &clientID)
	if body.IsFlexible() {
		dst = append(dst, 0) // no tags
	}
	dst = body.AppendTo(dst)
	return putLength(dst, at)
}

// AppendResponse appends the frame of a response: length, header and body.
func AppendResponse(dst []byte, correlation int32, body kmsg.Response) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendResponseHeader(dst, correlation, body.Key(), body.IsFlexible())
	dst = body.AppendTo(dst)
	return putLength(dst, at)
}

// appendResponseHeader: ApiVersions always has header v0, without tags, since its reader does not know the version yet (KIP-511).
func appendResponseHeader(dst []byte, correlation int32, key int16, flexible bool) []byte {
	dst = kbin.AppendInt32(dst, correlation)
	if flexible && key != ApiVersionsKey {
		dst = append(dst, 0)
	}
	return dst
}

// putLength fills in the length prefix at dst[at:].
func putLength(dst []byte, at int) []byte {
	kbin.AppendInt32(dst[at:at], int32(len(dst)-at-4))
	return dst
}
