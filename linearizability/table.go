package linearizability

// table finds values by number. Numbers that count up from zero, more or less, take no map.
type table[V any] struct {
	keys   []int32 // in the order in which they were added
	dense  []*V
	sparse map[int32]*V
}

// find is nil for a number that has no value.
func (t *table[V]) find(key int32) *V {
	if key >= 0 && int(key) < len(t.dense) {
		if v := t.dense[key]; v != nil {
			return v
		}
	}
	return t.sparse[key]
}

// add gives a number a value that has none.
func (t *table[V]) add(key int32, v *V) {
	t.keys = append(t.keys, key)
	if key < 0 || int(key) > 2*len(t.keys)+1024 {
		if t.sparse == nil {
			t.sparse = make(map[int32]*V)
		}
		t.sparse[key] = v
		return
	}
	for int(key) >= len(t.dense) {
		t.dense = append(t.dense, nil)
	}
	t.dense[key] = v
}
