package main

import (
	"iter"
	"slices"

	"ackproof/histories"
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
			return nil, named(s.path, err)
		}
		return out, nil
	}
}

// checkTransactions judges lists that transactions append to and read, as strictly serializable.
func checkTransactions(s *surveyed, f checkFlags) (*checked, error) {
	asked, err := askedOf("list-append", f.claims, []model.Claim{model.Serializability}, nil)
	if err != nil {
		return nil, err
	}
	in, err := open(s.path, f.format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	a, err := linearizability.CheckTransactions(in.All(), linearizability.TransactionOptions{Claims: asked})
	if err != nil {
		return nil, named(s.path, err)
	}
	out := &checked{answer: &linearizability.Answer{Claims: a.Claims, Operations: a.Operations}}
	out.Basis = "a promise of transactions that are " + a.Level.String()
	return out, nil
}

// queueClaims are what is asked of queues by default, and what one may ask for besides.
var queueClaims = map[string][2][]model.Claim{
	"queue": {{model.Lease, model.NoPhantom}, {model.NoLoss, model.NoDuplicate}},
	"fifo":  {{model.FIFO, model.NoPhantom, model.NoDuplicate}, {model.NoLoss}},
}

// checkQueue judges queues whose messages have leases or an order.
func checkQueue(name string, check func(iter.Seq2[histories.Event, error], linearizability.MonitorOptions) (*linearizability.Answer, error)) func(s *surveyed, f checkFlags) (*checked, error) {
	return func(s *surveyed, f checkFlags) (*checked, error) {
		asked, err := askedOf(name, f.claims, queueClaims[name][0], queueClaims[name][1])
		if err != nil {
			return nil, err
		}
		in, err := open(s.path, f.format)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		out := &checked{}
		out.Basis = map[string]string{"queue": "a queue that hands out with leases, at least once", "fifo": "a queue that hands out first what came in first"}[name]
		if out.answer, err = check(in.All(), linearizability.MonitorOptions{Claims: asked}); err != nil {
			return nil, named(s.path, err)
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
