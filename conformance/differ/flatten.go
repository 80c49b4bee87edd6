package main

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// flatten gives the fields of an answer by path. What differs from run to run or from system to system without a meaning (ids, addresses, times, texts for
// people) is masked: only whether it is there remains; of texts for people not even that.
func flatten(t *talk, resp kmsg.Response) map[string]string {
	all := map[string]string{}
	t.flatten(all, "", "", reflect.ValueOf(resp).Elem())
	return all
}

func (t *talk) flatten(all map[string]string, path, field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "Version" || f.Name == "UnknownTags" || !f.IsExported() {
				continue
			}
			t.flatten(all, strings.TrimPrefix(path+"."+f.Name, "."), f.Name, v.Field(i))
		}
	case reflect.Pointer:
		switch {
		case textForPeople[field]:
		case v.IsNil():
			all[path] = "null"
		default:
			t.flatten(all, path, field, v.Elem())
		}
	case reflect.Slice:
		if b, ok := v.Interface().([]byte); ok {
			all[path] = t.bytes(field, b)
			return
		}
		if v.IsNil() {
			all[path] = "null"
			return
		}
		all[path] = fmt.Sprintf("%d", v.Len())
		if kind := v.Type().Elem().Kind(); kind == reflect.Int32 && brokerLists[field] {
			return
		} else if kind != reflect.Struct {
			var list []string
			for i := range v.Len() {
				list = append(list, t.scalar(field, v.Index(i)))
			}
			slices.Sort(list)
			all[path] = fmt.Sprintf("%v", list)
			return
		}
		for i := range v.Len() {
			element := path + "[" + t.natural(v.Index(i), i) + "]"
			all[element] = "there"
			t.flatten(all, element, field, v.Index(i))
		}
	default:
		all[path] = t.scalar(field, v)
	}
}

// natural names an element by the field that tells it from the others, so that order is no difference.
func (t *talk) natural(v reflect.Value, i int) string {
	for _, name := range []string{"Topic", "Name", "Group", "GroupID", "ResourceName", "Partition", "ApiKey", "Key"} {
		f := v.FieldByName(name)
		if f.IsValid() && f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		if f.IsValid() && f.Kind() != reflect.Pointer {
			if f.Kind() == reflect.Int16 && name == "ApiKey" {
				return kmsg.NameForKey(int16(f.Int()))
			}
			if text := t.scalar(name, f); text != `""` {
				return strings.Trim(text, `"`)
			}
		}
	}
	return fmt.Sprint(i)
}

// Fields by what they hold, whichever answer they are in.
var (
	textForPeople = map[string]bool{"ErrorMessage": true, "Documentation": true, "AssignmentError": true}
	brokerLists   = map[string]bool{"Replicas": true, "ISR": true, "OfflineReplicas": true, "ReplicaNodes": true, "ISRNodes": true, "EligibleLeaderReplicas": true, "LastKnownELR": true}
	brokerFields  = map[string]bool{"NodeID": true, "Leader": true, "LeaderID": true, "ControllerID": true, "CoordinatorID": true, "BrokerID": true, "PreferredReadReplica": true, "ReplicaID": true}
	volatile      = map[string]bool{"ThrottleMillis": true, "ClusterID": true, "Host": true, "Port": true, "FinalizedFeaturesEpoch": true, "ClientHost": true}
	memberFields  = map[string]bool{"MemberID": true}
	counters      = map[string]bool{"LogEndOffset": true} // of the control plane
	producer      = map[string]bool{"ProducerID": true}
)

func (t *talk) scalar(field string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Array: // a topic's id, or a directory's
		switch id := v.Interface().([16]byte); id {
		case [16]byte{}:
			return "0"
		case t.id:
			return "<id>"
		default:
			return "<another id>"
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := v.Int()
		switch {
		case field == "ErrorCode":
			return code(int16(n))
		case volatile[field], (producer[field] || counters[field]) && n >= 0:
			return "<n>"
		case brokerFields[field] && n >= 0:
			return "<broker>"
		case n > 1_600_000_000_000 && n < 4_000_000_000_000: // milliseconds of these days
			return "<time>"
		}
		return fmt.Sprint(n)
	case reflect.String:
		text := v.String()
		switch {
		case text == "":
		case volatile[field]:
			text = "<text>"
		case memberFields[field], slices.Contains(t.members, text), field == "LeaderID":
			text = "<member>"
		}
		return fmt.Sprintf("%q", t.mask(text))
	}
	return fmt.Sprint(v.Interface())
}

func (t *talk) mask(text string) string {
	if t.topic != "" {
		text = strings.ReplaceAll(text, t.topic, "<topic>")
	}
	if t.group != "" {
		text = strings.ReplaceAll(text, t.group, "<group>")
	}
	return text
}

func (t *talk) bytes(field string, b []byte) string {
	if b == nil {
		return "null"
	}
	if field != "RecordBatches" {
		return fmt.Sprintf("%q", t.mask(string(b)))
	}
	batches, records := 0, int32(0)
	for len(b) >= 61 {
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(b); err != nil {
			return fmt.Sprintf("unreadable after %d batches: %v", batches, err)
		}
		batches, records = batches+1, records+batch.NumRecords
		b = b[12+batch.Length:]
	}
	return fmt.Sprintf("%d batches, %d records, %d bytes of another", batches, records, len(bytes.TrimSpace(b)))
}

// code names an error code.
func code(n int16) string {
	if n == 0 {
		return "none"
	}
	if e, ok := kerr.ErrorForCode(n).(*kerr.Error); ok {
		return e.Message
	}
	return fmt.Sprint(n)
}
