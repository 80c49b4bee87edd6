package main

import (
	"fmt"
	"slices"

	"ackproof/linearizability"
	"ackproof/model"
)

// checkObjects judges objects other than a partitioned log, by the sequential specification of the model.
func checkObjects(name string) func(s *surveyed, f checkFlags) (*checked, error) {
	return func(s *surveyed, f checkFlags) (*checked, error) {
		promised, optIn := linearizability.ObjectClaims(name)
		asked, err := askedOf(name, f.claims, promised, optIn)
		if err != nil {
			return nil, err
		}
		in, err := open(s.path, f.format)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		out := &checked{}
		out.Basis = "what a " + name + " is"
		if out.answer, err = linearizability.CheckObjects(in.All(), name, linearizability.ObjectOptions{Claims: asked}); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		return out, nil
	}
}

// askedOf reads the flag --claims for a model: nothing asks for what is promised, "all" for the rest too.
func askedOf(name, flag string, promised, optIn []model.Claim) ([]model.Claim, error) {
	known := slices.Concat(promised, optIn)
	var asked []model.Claim
	for _, c := range list(flag) {
		switch {
		case c == "all":
			asked = append(asked, known...)
		case slices.Contains(known, model.Claim(c)):
			asked = append(asked, model.Claim(c))
		default:
			return nil, usagef("--claims: there is no claim %q of the model %s, expected all or some of: %s", c, name, join(known))
		}
	}
	if asked == nil {
		return promised, nil
	}
	slices.Sort(asked)
	return slices.Compact(asked), nil
}
