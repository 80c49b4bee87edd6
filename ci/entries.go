package ci

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ackproof/model"
)

// testName is what a test may be called: it names a folder, a JUnit suite and a row of a table.
var testName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// flagInText finds the flag that an error is about.
var flagInText = regexp.MustCompile(`--([a-z][a-z-]*)`)

// draft is a test while it is read.
type draft struct {
	Test
	flags   []*setFlag
	claims  *yaml.Node
	budget  *yaml.Node
	permits *yaml.Node
	fresh   int64
}

// setFlag is one flag of `ackproof test` in the file.
type setFlag struct {
	name, value string
	at          *yaml.Node
}

func (d *draft) set(name, value string, at *yaml.Node) {
	i := slices.IndexFunc(d.flags, func(f *setFlag) bool { return f.name == name })
	if i < 0 {
		d.flags = append(d.flags, &setFlag{name: name})
		i = len(d.flags) - 1
	}
	d.flags[i].value, d.flags[i].at = value, at
}

// test reads one entry of tests: the defaults first, then its own keys over them.
func (r *reader) test(n *yaml.Node) error {
	d := &draft{Test: Test{Line: n.Line, Expect: ExpectHeld, Undecided: Fail, NotTested: Fail, Retries: 1}}
	shared := keys{
		"claims":     func(v *yaml.Node) error { d.claims = v; return r.claims(d, v) },
		"budget":     func(v *yaml.Node) (err error) { d.budget = v; d.Budget, err = r.duration(v, "budget"); return err },
		"seeds":      func(v *yaml.Node) error { return r.seeds(d, v) },
		"fresh":      func(v *yaml.Node) (err error) { d.fresh, err = r.number(v, "fresh", 0, maxSeeds); return err },
		"undecided":  func(v *yaml.Node) (err error) { d.Undecided, err = choice(r, v, "undecided", Fail, Skip); return err },
		"not-tested": func(v *yaml.Node) (err error) { d.NotTested, err = choice(r, v, "not-tested", Fail, Skip); return err },
		"permitted":  func(v *yaml.Node) error { return r.permitted(d, v) },
		"retries": func(v *yaml.Node) error {
			tries, err := r.number(v, "retries", 0, 5)
			d.Retries = int(tries)
			return err
		},
	}
	flag := func(key string, v *yaml.Node) (bool, error) {
		if !slices.Contains(r.flags.Names, key) {
			return false, nil
		}
		value, err := r.flag(key, v)
		d.set(key, value, v)
		return true, err
	}
	if r.defaults != nil {
		if err := r.mapping(r.defaults, "defaults", shared, flag); err != nil {
			return err
		}
	}
	own := keys{
		"name": func(v *yaml.Node) (err error) {
			if !testName.MatchString(v.Value) {
				return r.wrong(v, "name is %s, expected up to 64 letters, digits, dots, underscores and hyphens", kind(v))
			}
			d.Name = v.Value
			return nil
		},
		"expect": func(v *yaml.Node) (err error) {
			d.Expect, err = choice(r, v, "expect", ExpectHeld, ExpectViolated)
			return err
		},
	}
	for key, set := range shared {
		own[key] = set
	}
	if err := r.mapping(n, "a test", own, flag); err != nil {
		return err
	}
	return r.finish(n, d)
}

// finish looks at a test as a whole.
func (r *reader) finish(n *yaml.Node, d *draft) error {
	if d.Name == "" {
		return r.wrong(n, "a test has no name, expected one")
	}
	if i := slices.IndexFunc(r.gate.Tests, func(t Test) bool { return t.Name == d.Name }); i >= 0 {
		return r.wrong(n, "two tests are called %q, the first in line %d; expected each name once", d.Name, r.gate.Tests[i].Line)
	}
	if len(d.Seeds) == 0 && d.fresh == 0 {
		d.fresh = 1
	}
	for range d.fresh {
		s := Seed{Value: drawSeed(), Fresh: true}
		for slices.ContainsFunc(d.Seeds, func(o Seed) bool { return o.Value == s.Value }) {
			s.Value = drawSeed()
		}
		d.Seeds = append(d.Seeds, s)
	}
	if d.Expect == ExpectViolated && d.Permitted != nil {
		return r.wrong(n, "test %q expects a violation and says what loss is permitted, expected one of them", d.Name)
	}
	for _, f := range d.flags {
		d.Args = append(d.Args, "--"+f.name+"="+f.value)
	}
	args := d.Args
	if len(d.Claims) > 0 {
		args = append(slices.Clone(args), "--claims="+strings.ReplaceAll(words(d.Claims), ", ", ","))
	}
	meaning, err := r.flags.Check(args)
	if err != nil {
		return r.wrong(d.blame(n, err), "test %q: %v", d.Name, err)
	}
	d.Load = meaning.Load
	for _, a := range slices.Sorted(maps.Keys(d.Permitted)) {
		if !slices.Contains(meaning.Permits, a) {
			return r.wrong(d.permits, "permitted has %q, but the contract of test %q permits: %s", a, d.Name, cmp.Or(words(meaning.Permits), "nothing"))
		}
	}
	if d.Budget > 0 && d.loads() >= d.Budget {
		return r.wrong(d.budget, "the budget of test %q is %v, but the loads of its %s alone take %v; expected more, or fewer seeds", d.Name, d.Budget, count(len(d.Seeds), "run"), d.loads())
	}
	r.gate.Tests = append(r.gate.Tests, d.Test)
	return nil
}

// blame finds the place in the file that an error about flags comes from.
func (d *draft) blame(n *yaml.Node, err error) *yaml.Node {
	for _, match := range flagInText.FindAllStringSubmatch(err.Error(), -1) {
		if match[1] == "claims" && d.claims != nil {
			return d.claims
		}
		if i := slices.IndexFunc(d.flags, func(f *setFlag) bool { return f.name == match[1] }); i >= 0 {
			return d.flags[i].at
		}
	}
	return n
}

// flag reads the value of a flag; a list becomes what the flag takes, separated by commas.
func (r *reader) flag(key string, v *yaml.Node) (string, error) {
	if v.Kind != yaml.SequenceNode {
		return r.text(v, key, "a value")
	}
	var parts []string
	err := r.list(v, key, func(e *yaml.Node) error {
		part, err := r.text(e, "an element of "+key, "a value")
		parts = append(parts, part)
		return err
	})
	return strings.Join(parts, ","), err
}

func (r *reader) claims(d *draft, v *yaml.Node) error {
	d.Claims = nil
	err := r.list(v, "claims", func(e *yaml.Node) error {
		claim, err := r.text(e, "a claim", "its id, such as no-loss")
		d.Claims = append(d.Claims, model.Claim(claim))
		return err
	})
	if err == nil && len(d.Claims) == 0 {
		return r.wrong(v, "claims is empty, expected ids of claims, or no such key for every claim of the contract")
	}
	return err
}

func (r *reader) seeds(d *draft, v *yaml.Node) error {
	d.Seeds = nil
	return r.list(v, "seeds", func(e *yaml.Node) error {
		seed, err := r.number(e, "a seed", 0, 1<<62)
		switch {
		case err != nil:
			return err
		case slices.Contains(d.Seeds, Seed{Value: seed}):
			return r.wrong(e, "seed %d stands twice, expected each seed once: the same plan again is no further evidence", seed)
		case len(d.Seeds) == maxSeeds:
			return r.wrong(e, "more than %d seeds, expected fewer", maxSeeds)
		}
		d.Seeds = append(d.Seeds, Seed{Value: seed})
		return nil
	})
}

// permitted reads {lost-acked: 100} (at most) or {lost-acked: {min: 1, max: 100}}.
func (r *reader) permitted(d *draft, v *yaml.Node) error {
	d.Permitted, d.permits = map[model.Anomaly]Range{}, v
	return r.mapping(v, "permitted", nil, func(key string, v *yaml.Node) (bool, error) {
		between := Range{Max: unbounded}
		var err error
		if v.Kind == yaml.MappingNode {
			err = r.mapping(v, key, keys{
				"min": func(v *yaml.Node) (err error) { between.Min, err = r.number(v, "min", 0, unbounded); return err },
				"max": func(v *yaml.Node) (err error) { between.Max, err = r.number(v, "max", 0, unbounded); return err },
			}, nil)
		} else {
			between.Max, err = r.number(v, key, 0, unbounded)
		}
		if err == nil && between.Min > between.Max {
			err = r.wrong(v, "%s is %d to %d, expected min to be at most max", key, between.Min, between.Max)
		}
		d.Permitted[model.Anomaly(key)] = between
		return true, err
	})
}

// entry reads one entry of the quarantine.
func (r *reader) entry(n *yaml.Node) error {
	q := Quarantine{Line: n.Line}
	text := func(at *string, what, expected string) func(*yaml.Node) error {
		return func(v *yaml.Node) (err error) { *at, err = r.text(v, what, expected); return err }
	}
	var claim, anomaly, expires string
	err := r.mapping(n, "an entry of the quarantine", keys{
		"test":    text(&q.Test, "test", "the name of a test"),
		"claim":   text(&claim, "claim", "the id of a claim"),
		"anomaly": text(&anomaly, "anomaly", "the id of an anomaly"),
		"issue":   text(&q.Issue, "issue", "a link to the issue"),
		"owner":   text(&q.Owner, "owner", "who looks after it"),
		"expires": text(&expires, "expires", "a date"),
	}, nil)
	if err != nil {
		return err
	}
	q.Claim, q.Anomaly = model.Claim(claim), model.Anomaly(anomaly)
	for _, need := range []struct{ key, value string }{{"test", q.Test}, {"claim", claim}, {"issue", q.Issue}, {"owner", q.Owner}, {"expires", expires}} {
		if need.value == "" {
			return r.wrong(n, "an entry of the quarantine has no %s, expected test, claim, issue, owner and expires", need.key)
		}
	}
	if !slices.ContainsFunc(r.gate.Tests, func(t Test) bool { return t.Name == q.Test }) {
		return r.wrong(n, "the quarantine names the test %q, expected one of the tests of this file", q.Test)
	}
	if link, err := url.Parse(q.Issue); err != nil || link.Host == "" || link.Scheme != "https" && link.Scheme != "http" {
		return r.wrong(n, "issue is %q, expected a link like https://…", q.Issue)
	}
	day, err := time.Parse(time.DateOnly, expires)
	if err != nil {
		return r.wrong(n, "expires is %q, expected the last day on which the entry counts, like 2026-12-31", expires)
	}
	q.Expires = day.AddDate(0, 0, 1)
	for _, o := range r.gate.Quarantine {
		if o.Test == q.Test && o.Claim == q.Claim && o.Anomaly == q.Anomaly {
			return r.wrong(n, "the same violation is in quarantine already in line %d, expected it once", o.Line)
		}
	}
	r.gate.Quarantine = append(r.gate.Quarantine, q)
	return nil
}
