package kafka

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ackproof/systems/kafka/install"
)

// Settings are what a test may ask of Kafka beyond what it may ask of every system; systems.Options.Settings holds them by name.
type Settings struct {
	Version string // of a fetched installation; "": install.DefaultVersion
	Path    string // an own installation instead
	Cache   string // "": install.DefaultCache
	// Bootstrap is the addresses of a cluster that runs already: it is driven and never started, hurt or stopped.
	Bootstrap []string
	Timers    timers
	// Controllers is how many nodes are controllers and nothing else, 0, 1 or 3; with 0 each node is broker and controller. They come behind the brokers in the order of ids.
	Controllers int
	// ELR is "on" or "off", whether eligible leader replicas (KIP-966) are kept; "": the version's own default.
	ELR string
	// MinISRIn is where min.insync.replicas is written: inTopic, or inBrokers, in the files of the brokers alone.
	MinISRIn string
}

const (
	inTopic   = "topic"
	inBrokers = "brokers"
)

// SettingNames lists all settings with what they mean, for people.
func SettingNames() [][2]string {
	return [][2]string{
		{"version", "fetched version of Kafka: " + strings.Join(install.Versions(), ", ")},
		{"path", "folder of an own installation, instead of a fetched version"},
		{"cache", "folder of fetched versions"},
		{"bootstrap", "host:port[,…] of a cluster that runs already; then only the clients' links are hurt"},
		{"timers", "fast, mid or default: the time-outs of the brokers"},
		{"controllers", "0 (every node is one), 1 or 3 nodes that are controllers alone"},
		{"elr", "on or off: eligible leader replicas, KIP-966 (default: as the version has it)"},
		{"min-insync-in", "topic, or brokers: where min.insync.replicas is written"},
	}
}

// timers are a set of time-outs. In the order of size: fast is right on a machine with nothing else to do, mid on a busy one, default is what production has.
type timers struct {
	name                                                    string
	session, heartbeat                                      time.Duration
	quorumFetch, election, electionBackoff, request         time.Duration
	lag, fetchWait, fetchBackoff, socket, connect, connects time.Duration
	group, groupHeartbeat                                   time.Duration
}

const (
	ms = time.Millisecond
	s  = time.Second
)

var timerSets = []timers{
	{"fast", 2 * s, 300 * ms, 1 * s, 500 * ms, 200 * ms, 1 * s, 2 * s, 200 * ms, 100 * ms, 2 * s, 1 * s, 2 * s, 3 * s, 500 * ms},
	{"mid", 4 * s, 500 * ms, 4 * s, 2 * s, 500 * ms, 2 * s, 4 * s, 200 * ms, 200 * ms, 4 * s, 2 * s, 4 * s, 6 * s, 1 * s},
	{"default", 9 * s, 2 * s, 2 * s, 1 * s, 1 * s, 2 * s, 30 * s, 500 * ms, 1 * s, 30 * s, 10 * s, 30 * s, 45 * s, 5 * s},
}

// CheckSettings says what is wrong with settings, and what was expected; whether what they name is there is another question.
func CheckSettings(settings map[string]string) error {
	_, err := read(settings)
	return err
}

// read takes the settings apart.
func read(settings map[string]string) (Settings, error) {
	out := Settings{Timers: timerSets[1], MinISRIn: inTopic}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch v := settings[name]; name {
		case "version":
			if !slices.Contains(install.Versions(), v) {
				return out, fmt.Errorf("kafka: version is %q, expected one of: %s; any other one by its folder (path)", v, strings.Join(install.Versions(), ", "))
			}
			out.Version = v
		case "path":
			out.Path = v
		case "cache":
			out.Cache = v
		case "bootstrap":
			for addr := range strings.SplitSeq(v, ",") {
				addr = strings.TrimSpace(addr)
				if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
					return out, fmt.Errorf("kafka: bootstrap has %q, expected host:port", addr)
				}
				out.Bootstrap = append(out.Bootstrap, addr)
			}
		case "timers":
			i := slices.IndexFunc(timerSets, func(t timers) bool { return t.name == v })
			if i < 0 {
				return out, fmt.Errorf("kafka: timers is %q, expected fast, mid or default", v)
			}
			out.Timers = timerSets[i]
		case "controllers":
			n, err := strconv.Atoi(v)
			if err != nil || n != 0 && n != 1 && n != 3 {
				return out, fmt.Errorf("kafka: controllers is %q, expected 0, 1 or 3", v)
			}
			out.Controllers = n
		case "elr":
			if v != "on" && v != "off" {
				return out, fmt.Errorf("kafka: elr is %q, expected on or off", v)
			}
			out.ELR = v
		case "min-insync-in":
			if v != inTopic && v != inBrokers {
				return out, fmt.Errorf("kafka: min-insync-in is %q, expected %s or %s", v, inTopic, inBrokers)
			}
			out.MinISRIn = v
		default:
			var known []string
			for _, s := range SettingNames() {
				known = append(known, s[0])
			}
			return out, fmt.Errorf("kafka: there is no setting %q, expected one of: %s", name, strings.Join(known, ", "))
		}
	}
	if out.Path != "" && out.Version != "" {
		return out, fmt.Errorf("kafka: version %s and path %s, expected one of them", out.Version, out.Path)
	}
	if len(out.Bootstrap) > 0 && len(settings) > 1 {
		return out, fmt.Errorf("kafka: bootstrap beside other settings, %v, expected it alone: the cluster is what it is", settings)
	}
	return out, nil
}

// installation is what the settings name.
func (s Settings) installation() (install.Installation, error) {
	if s.Path != "" {
		return install.FromPath(s.Cache, s.Path)
	}
	return install.Find(s.Cache, s.Version)
}

// elr tells whether eligible leader replicas are kept. They came with 4.0 and are on in new clusters since 4.1.
func (s Settings) elr(in install.Installation) (bool, error) {
	if s.ELR == "on" && !in.Since(4, 0) {
		return false, fmt.Errorf("kafka: elr is on with Kafka %s, expected version 4.0 or later", in.Version)
	}
	return s.ELR == "on" || s.ELR == "" && in.Since(4, 1), nil
}
