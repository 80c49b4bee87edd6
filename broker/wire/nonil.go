package wire

import "reflect"

// fillNil replaces nil arrays in a response by empty ones. kmsg encodes nil as null where the protocol knows null, but Kafka itself answers with
// empty arrays, and the Java client takes a null there for granted not to come (CreateTopics' configs, DescribeTopicPartitions' eligible replicas).
// Byte fields stay as they are.
func fillNil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillNil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillNil(f)
			}
		}
	case reflect.Slice:
		kind := v.Type().Elem().Kind()
		if kind == reflect.Uint8 {
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		if kind == reflect.Struct {
			for i := range v.Len() {
				fillNil(v.Index(i))
			}
		}
	}
}
