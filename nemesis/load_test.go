package nemesis

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "schedule.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadTellsWhatIsWrongAndWhere(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", ``, ":1:1: the file ends early"},
		{"cut short", "{\"version\": 1,\n \"seed\": 7", ":2:11: the file ends early"},
		{"not JSON", "{\n  version: 1\n}", ":2:"},
		{"unknown field", "{\"version\": 1,\n \"faults\": [{\"kind\": \"kill\", \"four_ms\": 3}]}", ":2:30: unknown field \"four_ms\""},
		{"wrong type", "{\"version\": 1,\n \"faults\": [{\"for_ms\": \"long\"}]}", ":2:30: \"faults.for_ms\" is a string, expected a value for int64"},
		{"trailing", "{\"version\": 1}\n\n{}", ":3:1: expected the end of the file"},
		{"version", "{\"version\": 2}", "version is 2, expected 1"},
		{"no version", "{}", "version is 0, expected 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.text)
			_, err := Load(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %s and %q", err, path, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that does not exist loads")
	}
}

func TestGeneratedScheduleSurvivesTheFile(t *testing.T) {
	want := Generate(7, defaultRun)
	text, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(write(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzLoad(f *testing.F) {
	text, _ := json.Marshal(Generate(1, defaultRun))
	f.Add(text)
	f.Add([]byte(`{"version":1,"faults":[{"start":{"fault":-1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, at, err := parse(data)
		if err != nil {
			position(data, at)
			return
		}
		s.Validate(3, 6, 8)
	})
}

func TestValidateNamesTheField(t *testing.T) {
	good := func() Fault {
		return Fault{Kind: Partition, ForMS: 10, Target: Target{Role: RoleLeader}, Cut: Cut{Shape: Isolate}}
	}
	for _, c := range []struct {
		field string
		spoil func(*Fault)
	}{
		{"kind", func(f *Fault) { f.Kind = "reboot" }},
		{"for_ms", func(f *Fault) { f.ForMS = -1 }},
		{"for_ms", func(f *Fault) { f.ForMS = 0 }},
		{"stagger_ms", func(f *Fault) { f.StaggerMS = -1 }},
		{"until_fault", func(f *Fault) { f.UntilFault = at(1) }},
		{"until_fault", func(f *Fault) { f.UntilFault = at(2) }},
		{"start.after_ms", func(f *Fault) { f.Start.AfterMS = -1 }},
		{"start.fault", func(f *Fault) { f.Start.Fault = at(1) }},
		{"start.fault", func(f *Fault) { f.Start.Fault = at(-1) }},
		{"start.healed", func(f *Fault) { f.Start.Healed = true }},
		{"start.acked_more", func(f *Fault) { f.Start.AckedMore = -1 }},
		{"start.isr_at_most", func(f *Fault) { f.Start.ISRAtMost = -1 }},
		{"start.isr_at_least", func(f *Fault) { f.Start.ISRAtLeast = -1 }},
		{"cut.against", func(f *Fault) { f.Cut.Shape, f.Cut.Against = Ring, RoleLeader }},
		{"cut.against", func(f *Fault) { f.Cut.Against = RoleAll }},
		{"start.give_up_ms", func(f *Fault) { f.Start.GiveUpMS = -1 }},
		{"start.partition", func(f *Fault) { f.Start.Partition = 6 }},
		{"start.partition", func(f *Fault) { f.Start.Partition, f.Start.LeaderMoved = AnyPartition, true }},
		{"target.role", func(f *Fault) { f.Target.Role = "boss" }},
		{"target.role", func(f *Fault) { f.Target.Role = RoleSame }},
		{"target.role", func(f *Fault) { f.Target.Role = RoleAll }},
		{"target.role", func(f *Fault) { f.Cut.Shape = FollowerWeb }},
		{"target.node", func(f *Fault) { f.Target.Role = RoleNode }},
		{"target.node", func(f *Fault) { f.Target = Target{Role: RoleNode, Node: 4} }},
		{"target.node", func(f *Fault) { f.Target.Node = 1 }},
		{"target.partition", func(f *Fault) { f.Target.Partition = -2 }},
		{"target.aside", func(f *Fault) { f.Target.Aside = true }},
		{"cut.shape", func(f *Fault) { f.Cut.Shape = "" }},
		{"cut.clients[0]", func(f *Fault) { f.Cut.Clients = []int{9} }},
		{"cut", func(f *Fault) { f.Kind = Pause }},
		{"cut.plane", func(f *Fault) { f.Cut.Plane = "aero" }},
		{"cut.reset", func(f *Fault) { f.Kind, f.Percent, f.Cut.Reset = PacketLoss, 5, true }},
		{"percent", func(f *Fault) { f.Kind = PacketLoss }},
		{"percent", func(f *Fault) { f.Kind, f.Percent = PacketLoss, 101 }},
		{"percent", func(f *Fault) { f.Percent = 5 }},
		{"bytes_per_second", func(f *Fault) { f.Kind, f.BytesPerSecond = LinkRate, 1000 }},
		{"bytes_per_second", func(f *Fault) { f.BytesPerSecond = 1 << 20 }},
		{"whole", func(f *Fault) { f.Whole = true }},
		{"shuffle", func(f *Fault) { f.Shuffle = true }},
		{"amount_ms", func(f *Fault) { f.Kind = PacketDelay }},
		{"amount_ms", func(f *Fault) { f.Kind, f.AmountMS = LinkClog, 5 }},
	} {
		f := good()
		c.spoil(&f)
		err := Schedule{Version: 1, Faults: []Fault{good(), f}}.Validate(3, 6, 8)
		if err == nil || !strings.Contains(err.Error(), "faults[1]."+c.field+":") {
			t.Errorf("error %v, expected one about faults[1].%s", err, c.field)
		}
	}
	if err := (Schedule{Version: 1, Faults: []Fault{good()}}).Validate(3, 6, 8); err != nil {
		t.Error(err)
	}
	if err := (Schedule{}).Validate(3, 6, 8); err == nil {
		t.Error("a schedule of version 0 is valid")
	}
}
