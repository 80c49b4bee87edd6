package purity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/ci/source"
)

func root(t *testing.T) string {
	t.Helper()
	dir, _, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPurePackagesArePure(t *testing.T) {
	for _, tags := range []string{"", "failpoints"} {
		findings, err := Check(root(t), nil, append([]string{"-tags=" + tags}, Pure...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			t.Errorf("-tags=%q: %v", tags, f)
		}
	}
}

// planted are files that are added to the broker's core, and what is to be found in each; "" for nothing. They prove that the check works where it matters: in the
// real core, with its real imports.
var planted = map[string]struct{ code, want string }{
	"clock":            {`import "time"; func plant() time.Time { return time.Now() }`, "uses time.Now"},
	"clock_value":      {`import "time"; var plant = time.Since`, "uses time.Since"},
	"timer":            {`import "time"; func plant() { time.AfterFunc(1, func() {}) }`, "uses time.AfterFunc"},
	"zone":             {`import "time"; func plant(t time.Time) int { return t.Local().Hour() }`, "uses time.Local"},
	"renamed_clock":    {`import t "time"; func plant() { t.Sleep(1) }`, "uses time.Sleep"},
	"goroutine":        {`func plant() { go func() {}() }`, "starts a goroutine"},
	"channel":          {`func plant(c chan<- int) {}`, "uses a channel"},
	"lock":             {`import "sync"; func plant(m *sync.Mutex) { m.Lock() }`, `imports "sync"`},
	"atomic":           {`import "sync/atomic"; func plant(n *int32) { atomic.AddInt32(n, 1) }`, `imports "sync/atomic"`},
	"random":           {`import "math/rand/v2"; func plant() int { return rand.Int() }`, `imports "math/rand/v2"`},
	"crypto_random":    {`import "crypto/rand"; func plant(b []byte) { rand.Read(b) }`, `imports "crypto/rand"`},
	"file":             {`import "os"; func plant() { os.Remove("x") }`, `imports "os"`},
	"socket":           {`import "net"; func plant() { net.Dial("", "") }`, `imports "net"`},
	"map_order":        {`func plant(m map[int]int) (s []int) { for k := range m { s = append(s, k) }; return s }`, "ranges over a map"},
	"map_order_named":  {`type M map[int]int; func plant(m M) (s []int) { for k := range m { s = append(s, k) }; return s }`, "ranges over a map"},
	"map_order_any":    {`func plant[M ~map[int]int](m M) (s []int) { for k := range m { s = append(s, k) }; return s }`, "ranges over a map"},
	"map_order_keys":   {`import ("maps"; "slices"); func plant(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }`, "uses maps.Keys"},
	"no_reason":        {"func plant(m map[int]int) {\n//order-free:\nfor range m { } }", "without a reason"},
	"needless":         {"//order-free: nothing here\nfunc plant() {}", "without a range over a map"},
	"global":           {`var n int; func plant() { n++ }`, "assigns to the package's variable n"},
	"global_map":       {`var m = map[int]int{}; func plant() { m[1] = 2 }`, "assigns to the package's variable m"},
	"global_field":     {`var s struct{ a []int }; func plant() { s.a[0] = 2 }`, "assigns to the package's variable s"},
	"global_pointer":   {`var n int; func plant() *int { return &n }`, "takes the address of the package's variable n"},
	"global_method":    {`type N int; func (n *N) inc() { *n++ }; var n N; func plant() { n.inc() }`, "calls a method that may change the package's variable n"},
	"global_delete":    {`var m = map[int]int{}; func plant() { delete(m, 1) }`, "changes the package's variable m"},
	"foreign_global":   {`import "encoding/binary"; func plant() { binary.BigEndian = binary.BigEndian }`, "assigns to the package's variable BigEndian"},
	"linkname":         {"import _ \"unsafe\"\n//go:linkname now time.now\nfunc now() int64 { return 0 }", "linkname"},
	"good_sorted":      {`import ("maps"; "slices"); func plant(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }`, ""},
	"good_directive":   {"func plant(m map[int]int) (n int) {\n//order-free: a sum\nfor _, v := range m { n += v }; return n }", ""},
	"good_local":       {`func plant() int { n := 1; n++; p := &n; *p = 2; return n }`, ""},
	"good_time":        {`import "time"; func plant(now time.Time) bool { return now.Add(time.Second).After(now) }`, ""},
	"good_global_read": {`var table = map[int]int{1: 2}; func plant() int { return table[1] }`, ""},
}

func TestPlantedImpurityIsFound(t *testing.T) {
	dir := t.TempDir()
	core := filepath.Join(root(t), "broker", "core")
	replace, overlay := map[string]string{}, map[string]string{}
	for name, p := range planted {
		// A folder each, which exists only in the overlay: the go command then sees a new pure package.
		path := filepath.Join(core, "planted_"+name, "planted.go")
		file := filepath.Join(dir, name+".go")
		overlay[path] = "package planted\n" + p.code + "\n"
		if err := os.WriteFile(file, []byte(overlay[path]), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	flag, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	flagFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(flagFile, flag, 0o644); err != nil {
		t.Fatal(err)
	}
	findings, err := Check(root(t), overlay, append([]string{"-overlay", flagFile}, Pure...)...)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, f := range findings {
		name := strings.TrimPrefix(filepath.Base(filepath.Dir(f.Pos.Filename)), "planted_")
		found[name] = append(found[name], f.What)
	}
	for name, p := range planted {
		all := strings.Join(found[name], "; ")
		if p.want == "" && all != "" {
			t.Errorf("%s: found %q in sound code: %s", name, all, p.code)
		}
		if !strings.Contains(all, p.want) {
			t.Errorf("%s: found %q, want %q in: %s", name, all, p.want, p.code)
		}
	}
}
