package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"ackproof/systems"
	"ackproof/systems/kafka"
	"ackproof/systems/reference"
)

// openSystem gives the constructor of a system by its name.
func openSystem(name string) func(systems.Options) (systems.System, error) {
	return func(o systems.Options) (systems.System, error) {
		switch name {
		case "reference":
			return opened(reference.New(o, ""))
		case "kafka":
			return kafka.Open(o)
		default:
			return nil, fmt.Errorf("there is no system %q", name)
		}
	}
}

// opened makes an interface of a system; of none, it makes none.
func opened[S systems.System](s S, err error) (systems.System, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// systemFlags are the flags that only some systems know. Each is a setting of the system under another name.
type systemFlags struct {
	kafkaVersion, path, bootstrap, cache string
	settings                             []string
}

// settingFlags are those of systemFlags that stand for one setting, by the name of the flag.
var settingFlags = map[string]string{"kafka-version": "version", "path": "path", "bootstrap": "bootstrap", "cache": "cache"}

func (f *systemFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kafkaVersion, "kafka-version", "", "with --system kafka: version, of those that ackproof fetch knows (default 4.4.0)")
	flags.StringVar(&f.path, "path", "", "with --system kafka: folder of an own installation, instead of a fetched version")
	flags.StringVar(&f.bootstrap, "bootstrap", "", "with --system kafka: host:port[,host:port…] of a cluster that runs already; nothing of it is stopped, only the links of the\nclients are hurt, and the test's topic is removed at the end. --nodes is the number of its brokers")
	flags.StringVar(&f.cache, "cache", "", "with --system kafka: where ackproof fetch has put it (default: the user's cache folder)")
	var known []string
	for _, s := range kafka.SettingNames() {
		known = append(known, "  "+s[0]+": "+s[1])
	}
	flags.StringArrayVar(&f.settings, "setting", nil, "name=value, a setting of the system; may be repeated. Those of kafka:\n"+strings.Join(known, "\n"))
}

// values are the settings as the system takes them, nil if there are none.
func (f *systemFlags) values(flags *pflag.FlagSet, system string) (map[string]string, error) {
	var out map[string]string
	set := func(name, value string) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	for _, s := range f.settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, usagef("--setting is %q, expected name=value", s)
		}
		set(name, value)
	}
	var wrong error
	flags.Visit(func(g *pflag.Flag) {
		name, ok := settingFlags[g.Name]
		if !ok {
			return
		}
		if g.Value.String() == "" {
			wrong = usagef("--%s is empty, expected a value", g.Name)
		}
		set(name, g.Value.String())
	})
	if wrong == nil && system == "kafka" {
		if err := kafka.CheckSettings(out); err != nil {
			wrong = usagef("%v", err)
		}
	}
	return out, wrong
}

// movable tells whether the nodes of the system can be told at which addresses to dial each other, so that a proxy on the way can cut them off.
func movable(system string) bool { return system == "reference" }
