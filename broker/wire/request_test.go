package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// header makes the start of a frame without its length.
func header(key, version int16, correlation int32, client *string) []byte {
	b := kbin.AppendInt16(nil, key)
	b = kbin.AppendInt16(b, version)
	b = kbin.AppendInt32(b, correlation)
	return kbin.AppendNullableString(b, client)
}

func TestEveryServedVersionParses(t *testing.T) {
	table := NewTable(APIs())
	for _, a := range APIs() {
		for v := a.Min; v <= a.Max; v++ {
			q := a.New()
			q.SetVersion(v)
			frame := AppendRequest(nil, 7, "tester", q)[4:]
			got, err := table.Parse(frame)
			if err != nil {
				t.Errorf("%s v%d: %v", a.Name, v, err)
				continue
			}
			if got.API.Key != a.Key || got.Version != v || got.Correlation != 7 || got.ClientID != "tester" || got.TooNew {
				t.Errorf("%s v%d: parsed as %s v%d, correlation %d, client %q", a.Name, v, got.API.Name, got.Version, got.Correlation, got.ClientID)
			}
			if again := AppendRequest(nil, 7, "tester", got.Body)[4:]; !reflect.DeepEqual(again, frame) {
				t.Errorf("%s v%d: encodes to % x, was % x", a.Name, v, again, frame)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	client := "c"
	for _, c := range []struct {
		name  string
		frame []byte
		want  error
	}{
		{"nothing", nil, ErrMalformed},
		{"half a header", []byte{0, 3, 0, 9, 0}, ErrMalformed},
		{"a key that nobody has", header(999, 0, 1, &client), ErrUnknownAPI},
		{"a negative key", header(-1, 0, 1, &client), ErrUnknownAPI},
		{"Produce v2, which is advertised only", header(0, 2, 1, &client), ErrVersion},
		{"Fetch v19", header(1, 19, 1, &client), ErrVersion},
		{"a negative version", header(3, -1, 1, &client), ErrVersion},
		{"a negative version of ApiVersions", header(18, -1, 1, &client), ErrVersion},
		{"a client id that is longer than the frame", append(header(3, 1, 1, nil)[:8], 0x7f, 0xff), ErrMalformed},
		{"Metadata without body", header(3, 1, 1, &client), ErrMalformed},
		{"a tag section that does not end", append(header(3, 9, 1, &client), 5, 1), ErrMalformed},
		{"more topics than bytes", append(header(3, 1, 1, &client), 0x7f, 0xff, 0xff, 0xff), ErrMalformed},
	} {
		if _, err := NewTable(APIs()).Parse(c.frame); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestVersionsThatAreNotServed: of every API, those next to the range and the ends of what the field can hold. kmsg would read each with the newest layout that it knows.
func TestVersionsThatAreNotServed(t *testing.T) {
	table := NewTable(APIs())
	for _, a := range APIs() {
		for _, version := range []int16{-32768, -1, a.Min - 1, a.Max + 1, 32767} {
			if version >= a.Min && version <= a.Max {
				continue
			}
			frame := append(header(a.Key, version, 1, nil), make([]byte, 200)...)
			q, err := table.Parse(frame)
			if a.Key == ApiVersionsKey && version > a.Max { // KIP-511
				if err != nil || !q.TooNew || q.Version != 0 {
					t.Errorf("%s v%d: %+v, %v; want an answer of version 0", a.Name, version, q, err)
				}
			} else if !errors.Is(err, ErrVersion) {
				t.Errorf("%s v%d: %v, want %v", a.Name, version, err, ErrVersion)
			}
		}
	}
}

func TestApiVersions(t *testing.T) {
	table := NewTable(APIs())
	answer := func(version int16) []byte {
		q, err := table.Parse(append(header(18, version, 5, nil), 0xff, 0xff, 0xff)) // a body that no version has: it must not be parsed when too new
		if version <= 4 {
			r := kmsg.NewPtrApiVersionsRequest()
			r.Version, r.ClientSoftwareName, r.ClientSoftwareVersion = version, "a-client", "1.0"
			q, err = table.Parse(AppendRequest(nil, 5, "c", r)[4:])
		}
		if err != nil {
			t.Fatalf("v%d: %v", version, err)
		}
		return AppendResponse(nil, 5, table.ApiVersions(q))[4:]
	}
	for _, c := range []struct {
		asked, layout int16
		code          int16
	}{{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {4, 4, 0}, {5, 0, kerr.UnsupportedVersion.Code}, {99, 0, kerr.UnsupportedVersion.Code}} {
		frame := answer(c.asked)
		// The header is four bytes in every version: the body begins right behind the correlation id.
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = c.layout
		if err := resp.ReadFrom(frame[4:]); err != nil {
			t.Fatalf("v%d: %v", c.asked, err)
		}
		if resp.ErrorCode != c.code {
			t.Errorf("v%d: error code %d, want %d", c.asked, resp.ErrorCode, c.code)
		}
		found := map[int16]kmsg.ApiVersionsResponseApiKey{}
		for _, k := range resp.ApiKeys {
			found[k.ApiKey] = k
		}
		if p := found[0]; p.MinVersion != 0 || p.MaxVersion != 13 {
			t.Errorf("v%d: Produce is advertised as %d to %d; librdkafka 2.0 compresses only if it begins at 0", c.asked, p.MinVersion, p.MaxVersion)
		}
		if f, there := found[10]; !there || f.MinVersion != 0 {
			t.Errorf("v%d: FindCoordinator is advertised from %d on; librdkafka compresses with lz4 only if it begins at 0", c.asked, f.MinVersion)
		}
		for _, a := range APIs() {
			if _, there := found[a.Key]; there == a.Internal {
				t.Errorf("v%d: %s advertised: %v", c.asked, a.Name, there)
			}
		}
	}
}

func TestApiVersionsWantsNamesOfSoftware(t *testing.T) {
	table := NewTable(APIs())
	for name, code := range map[string]int16{"librdkafka": 0, "a.b-c": 0, "": kerr.InvalidRequest.Code, "a b": kerr.InvalidRequest.Code, "-a": kerr.InvalidRequest.Code, "a-": kerr.InvalidRequest.Code} {
		for _, version := range []int16{2, 3, 4} {
			r := kmsg.NewPtrApiVersionsRequest()
			r.Version, r.ClientSoftwareName, r.ClientSoftwareVersion = version, name, "1"
			q, err := table.Parse(AppendRequest(nil, 5, "c", r)[4:])
			if err != nil {
				t.Fatal(err)
			}
			want := code
			if version == 2 {
				want = 0 // it has no names
			}
			if got := table.ApiVersions(q); got.ErrorCode != want || (want == 0) != (len(got.ApiKeys) > 0) {
				t.Errorf("v%d, name %q: error code %d with %d keys, want code %d", version, name, got.ErrorCode, len(got.ApiKeys), want)
			}
		}
	}
}

func TestResponseHeaderHasTagsOnlyWhenFlexible(t *testing.T) {
	r := kmsg.NewPtrMetadataResponse()
	r.Version = 8
	plain := AppendResponse(nil, 1, r)
	r.Version = 9
	if got := AppendResponse(nil, 1, r)[8]; got != 0 {
		t.Errorf("Metadata v9: byte behind the correlation id is %d, want an empty tag section", got)
	}
	if want := r.AppendTo(nil); len(AppendResponse(nil, 1, r)) != 4+4+1+len(want) {
		t.Error("Metadata v9: header of another size than 5 bytes")
	}
	r.Version = 8
	if len(plain) != 4+4+len(r.AppendTo(nil)) {
		t.Error("Metadata v8: header of another size than 4 bytes")
	}
}

func TestRaftRoundTrip(t *testing.T) {
	in := &Raft{From: 3, Cluster: "c", Messages: [][]byte{{1, 2}, {}, {3}}}
	var out Raft
	if err := out.ReadFrom(in.AppendTo(nil)); err != nil || !reflect.DeepEqual(&out, in) {
		t.Errorf("%+v, %v; want %+v", out, err, in)
	}
	for cut := range in.AppendTo(nil) {
		if err := new(Raft).ReadFrom(in.AppendTo(nil)[:cut]); err == nil {
			t.Errorf("the first %d bytes parse", cut)
		}
	}
}

// TestNoNull: no array of any response goes out as null.
func TestNoNull(t *testing.T) {
	for _, a := range APIs() {
		resp := a.New().ResponseKind()
		if resp == nil {
			continue
		}
		fill(reflect.ValueOf(resp), 3) // one element in each array, so that arrays inside of arrays are seen
		empty(reflect.ValueOf(resp), 3)
		fillNil(reflect.ValueOf(resp))
		if path := nilArray(reflect.ValueOf(resp), a.Name); path != "" {
			t.Errorf("%s is nil", path)
		}
	}
}

// fill gives every array one element, down to some depth.
func fill(v reflect.Value, depth int) {
	visit(v, func(f reflect.Value) {
		if f.IsNil() && depth > 0 {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			fill(f.Index(0), depth-1)
		}
	})
}

// empty makes the innermost arrays nil.
func empty(v reflect.Value, depth int) {
	visit(v, func(f reflect.Value) {
		if depth == 0 || f.Len() > 0 && f.Index(0).Kind() != reflect.Struct {
			f.SetZero()
		} else if f.Len() > 0 {
			empty(f.Index(0), depth-1)
		}
	})
}

func nilArray(v reflect.Value, path string) (found string) {
	visit(v, func(f reflect.Value) {
		if f.IsNil() {
			found = path + ": an array of " + f.Type().Elem().String()
		}
		for i := range f.Len() {
			if inner := nilArray(f.Index(i), path+"."+f.Type().Elem().Name()); inner != "" {
				found = inner
			}
		}
	})
	return found
}

// visit calls f for the arrays among the fields of a struct, but not for bytes.
func visit(v reflect.Value, f func(reflect.Value)) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if x := v.Field(i); x.CanSet() && x.Kind() == reflect.Slice && x.Type().Elem().Kind() != reflect.Uint8 {
			f(x)
		}
	}
}
