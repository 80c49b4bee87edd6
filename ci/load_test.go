package ci

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/model"
)

func TestAGateFileIsRead(t *testing.T) {
	g := load(t, `
version: 1
budget: 10m
defaults:
  time: 20s
  nemesis: [kill, pause]
  undecided: skip
tests:
  - name: first
    seeds: [3, 1]
    fresh: 2
    budget: 3m
    claims: [no-loss, order]
    nodes: 5
    retries: 0
  - name: second
    acks: 1
    time: 5s
    expect: held
    not-tested: skip
    undecided: fail
    permitted: {lost-acked: {min: 1, max: 50}}
  - name: third
    expect: violated
    seeds: [1]
quarantine:
  - {test: first, claim: no-loss, anomaly: lost-acked, issue: https://example.org/7, owner: ann, expires: 2026-12-31}
`)
	if len(g.Tests) != 3 || g.Budget != 10*time.Minute {
		t.Fatalf("%+v", g)
	}
	first := g.Tests[0]
	if seeds := first.Seeds; len(seeds) != 4 || seeds[0] != (Seed{Value: 3}) || seeds[1] != (Seed{Value: 1}) || !seeds[2].Fresh || !seeds[3].Fresh || seeds[2] == seeds[3] {
		t.Errorf("seeds %v", seeds)
	}
	first.Seeds = nil
	want := Test{Name: "first", Line: 9, Args: []string{"--time=20s", "--nemesis=kill,pause", "--nodes=5"}, Load: 20 * time.Second, Budget: 3 * time.Minute,
		Claims: []model.Claim{"no-loss", "order"}, Expect: ExpectHeld, Undecided: Skip, NotTested: Fail}
	if d := cmp.Diff(want, first); d != "" {
		t.Errorf("first (want −, got +):\n%s", d)
	}
	second := g.Tests[1]
	if len(second.Seeds) != 1 || !second.Seeds[0].Fresh || second.Load != 5*time.Second || second.Undecided != Fail || second.NotTested != Skip || second.Permitted["lost-acked"] != (Range{1, 50}) || second.Retries != 1 {
		t.Errorf("second: %+v", second)
	}
	q := g.Quarantine[0]
	if q.Expired(time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)) || !q.Expired(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) || q.LastDay() != "2026-12-31" {
		t.Errorf("quarantine until %v", q.Expires)
	}
}

// Every error names the line of what is to blame, and what was expected.
func TestSenselessGateFiles(t *testing.T) {
	const head = "version: 1\nbudget: 5m\ntests:\n"
	for _, c := range []struct {
		name, text, want string
	}{
		{"nothing", "", "empty"},
		{"no YAML", "version: [1\nbudget: 5m", "not YAML"},
		{"a tab", "version: 1\n\tbudget: 5m\n", ":2: not YAML"},
		{"a list", "- version: 1\n", ":1: the gate is a list, expected a mapping"},
		{"two documents", "version: 1\n---\nversion: 1\n", "second document"},
		{"no version", "budget: 5m\ntests: []\n", "no version"},
		{"a newer version", "version: 2\nbudget: 5m\ntests: []\n", ":1: version is \"2\", expected 1"},
		{"no budget", "version: 1\ntests: []\n", "no budget"},
		{"a budget without a unit", "version: 1\nbudget: 5\ntests: []\n", ":2: budget is \"5\", expected a duration"},
		{"no tests", "version: 1\nbudget: 5m\n", "no tests"},
		{"none", "version: 1\nbudget: 5m\ntests: []\n", "0 tests, expected 1"},
		{"an unknown key", head + "  - name: a\n    clams: [no-loss]\n", ":5: a test has the unknown key \"clams\", expected one of: budget, claims"},
		{"an unknown key at the top", "version: 1\nbudgets: 5m\n", ":2: the gate has the unknown key \"budgets\""},
		{"a flag that the gate sets itself", head + "  - name: a\n    seed: 1\n", ":5: a test has the unknown key \"seed\""},
		{"a key twice", head + "  - name: a\n    nodes: 3\n    nodes: 4\n", ":6: a test has the key \"nodes\" twice, first in line 5"},
		{"a name twice", head + "  - name: a\n  - name: a\n", ":5: two tests are called \"a\", the first in line 4"},
		{"no name", head + "  - nodes: 3\n", ":4: a test has no name"},
		{"a name that is a path", head + "  - name: ../a\n", ":4: name is \"../a\""},
		{"a name in defaults", "version: 1\nbudget: 5m\ndefaults: {name: a}\ntests: [{name: b}]\n", ":3: defaults has the unknown key \"name\""},
		{"a flag out of range", head + "  - name: a\n    nodes: 0\n", ":5: test \"a\": --nodes is 0, expected 1 to 15"},
		{"a flag out of range in defaults", "version: 1\nbudget: 5m\ndefaults:\n  nodes: 0\ntests: [{name: b}]\n", ":4: test \"b\": --nodes is 0"},
		{"an empty flag", head + "  - name: a\n    nodes:\n", ":5: nodes is empty"},
		{"an unknown claim", head + "  - name: a\n    claims: [no-losses]\n", ":5: test \"a\": --claims has"},
		{"no claims", head + "  - name: a\n    claims: []\n", ":5: claims is empty"},
		{"a seed twice", head + "  - name: a\n    seeds: [1, 1]\n", ":5: seed 1 stands twice"},
		{"a seed that is none", head + "  - name: a\n    seeds: [one]\n", ":5: a seed is \"one\""},
		{"seeds that are no list", head + "  - name: a\n    seeds: 7\n", ":5: seeds is \"7\", expected a list"},
		{"a fresh half", head + "  - name: a\n    fresh: 0.5\n", ":5: fresh is \"0.5\""},
		{"an unknown policy", head + "  - name: a\n    undecided: ignore\n", ":5: undecided is \"ignore\", expected one of: fail, skip"},
		{"an unknown expectation", head + "  - name: a\n    expect: red\n", ":5: expect is \"red\", expected one of: held, violated"},
		{"a budget that no load fits", "version: 1\nbudget: 30s\ntests: [{name: a, time: 20s, fresh: 2}]\n", ":2: the budget is 30s, but the loads of all runs alone take 40s"},
		{"a test's budget that no load fits", head + "  - name: a\n    time: 20s\n    budget: 20s\n", ":6: the budget of test \"a\" is 20s, but the loads of its 1 run alone take 20s"},
		{"a loss that is not permitted", head + "  - name: a\n    permitted: {lost-acked: 5}\n", ":5: permitted has \"lost-acked\", but the contract of test \"a\" permits: nothing"},
		{"an anomaly misspelt", head + "  - name: a\n    acks: 1\n    permitted: {lost-ackd: 5}\n", ":6: permitted has \"lost-ackd\", but the contract of test \"a\" permits: lost-acked"},
		{"a range upside down", head + "  - name: a\n    acks: 1\n    permitted: {lost-acked: {min: 5, max: 2}}\n", ":6: lost-acked is 5 to 2"},
		{"both expectations", head + "  - name: a\n    acks: 1\n    expect: violated\n    permitted: {lost-acked: 5}\n", "expected one of them"},
		{"quarantine without an owner", head + "  - name: a\nquarantine:\n  - {test: a, claim: no-loss, issue: https://x.org/1, expires: 2026-12-31}\n", ":6: an entry of the quarantine has no owner"},
		{"quarantine without an issue", head + "  - name: a\nquarantine:\n  - {test: a, claim: no-loss, owner: ann, expires: 2026-12-31}\n", "has no issue"},
		{"quarantine without a date", head + "  - name: a\nquarantine:\n  - {test: a, claim: no-loss, owner: ann, issue: https://x.org/1}\n", "has no expires"},
		{"quarantine with a note for an issue", head + "  - name: a\nquarantine:\n  - {test: a, claim: no-loss, owner: ann, issue: soon, expires: 2026-12-31}\n", "issue is \"soon\", expected a link"},
		{"quarantine until some day", head + "  - name: a\nquarantine:\n  - {test: a, claim: no-loss, owner: ann, issue: https://x.org/1, expires: soon}\n", "expires is \"soon\""},
		{"quarantine of another test", head + "  - name: a\nquarantine:\n  - {test: b, claim: no-loss, owner: ann, issue: https://x.org/1, expires: 2026-12-31}\n", "names the test \"b\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.text)
			_, err := Load(path, flags)
			var wrong FileError
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected a FileError with %q", err, c.want)
			}
		})
	}
	if _, err := Load("/nonexistent/gate.yaml", flags); err == nil || !strings.Contains(err.Error(), "/nonexistent/gate.yaml: read the gate file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Whatever the bytes, the answer is a gate or a FileError.
func FuzzLoad(f *testing.F) {
	f.Add("version: 1\nbudget: 5m\ntests: [{name: a, seeds: [1], permitted: {x: {min: 1}}}]\nquarantine: [{test: a}]\n")
	f.Add("a: &a [*a]\n")
	f.Add("version: 1\nbudget: 5m\ndefaults: &d {time: 1s}\ntests: [*d, {<<: *d}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Load(write(t, text), flags)
		var wrong FileError
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("%T %v", err, err)
		}
	})
}
