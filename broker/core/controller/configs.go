package controller

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConfigKey is a topic configuration that this broker knows, with Kafka's name and meaning.
type ConfigKey struct {
	Name      string
	Type      kmsg.ConfigType
	Default   string   // unless the cluster is configured otherwise
	Words     []string // the values that it may have; nil: whole numbers from Low to High
	Low, High int64
}

const (
	minISRKey  = "min.insync.replicas"
	uncleanKey = "unclean.leader.election.enable"
)

// configKeys is in alphabetical order.
var configKeys = []ConfigKey{
	{Name: "cleanup.policy", Type: kmsg.ConfigTypeList, Default: "delete", Words: []string{"delete"}},
	{Name: "compression.type", Type: kmsg.ConfigTypeString, Default: "producer", Words: []string{"producer"}},
	{Name: "flush.messages", Type: kmsg.ConfigTypeLong, Default: "9223372036854775807", Low: 1, High: math.MaxInt64},
	{Name: "max.message.bytes", Type: kmsg.ConfigTypeInt, Default: "1048588", Low: 0, High: math.MaxInt32},
	{Name: "message.timestamp.type", Type: kmsg.ConfigTypeString, Default: "CreateTime", Words: []string{"CreateTime"}},
	{Name: minISRKey, Type: kmsg.ConfigTypeInt, Default: "1", Low: 1, High: math.MaxInt16},
	{Name: "retention.bytes", Type: kmsg.ConfigTypeLong, Default: "-1", Low: -1, High: math.MaxInt64},
	{Name: "retention.ms", Type: kmsg.ConfigTypeLong, Default: "604800000", Low: -1, High: math.MaxInt64},
	{Name: "segment.bytes", Type: kmsg.ConfigTypeInt, Default: "1073741824", Low: 14, High: math.MaxInt32},
	{Name: uncleanKey, Type: kmsg.ConfigTypeBoolean, Default: "false", Words: []string{"true", "false"}},
}

// ConfigKeys lists all topic configurations in alphabetical order.
func ConfigKeys() []ConfigKey { return slices.Clone(configKeys) }

// Check returns an error that says what was expected, if the value is not one for this key.
func (k ConfigKey) Check(value string) error {
	if k.Words != nil {
		if !slices.Contains(k.Words, value) {
			return fmt.Errorf("configuration %s is %.100q, want one of %q", k.Name, value, k.Words)
		}
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < k.Low || n > k.High {
		return fmt.Errorf("configuration %s is %.100q, want a whole number from %d to %d", k.Name, value, k.Low, k.High)
	}
	return nil
}

func configKey(name string) (ConfigKey, bool) {
	i := slices.IndexFunc(configKeys, func(k ConfigKey) bool { return k.Name == name })
	if i < 0 {
		return ConfigKey{}, false
	}
	return configKeys[i], true
}

func unknownConfig(name string) error {
	return fmt.Errorf("%.100q is not a configuration of topics here", name)
}

func checkConfig(name, value string) error {
	k, ok := configKey(name)
	if !ok {
		return unknownConfig(name)
	}
	return k.Check(value)
}

// Config is the value that holds for a topic: its own, else the cluster's, else Kafka's default. It is empty for an unknown key.
func (im *Image) Config(t *Topic, name string) string {
	if v, ok := t.Configs[name]; ok {
		return v
	}
	return im.defaultConfig(name)
}

func (im *Image) defaultConfig(name string) string {
	if v, ok := im.Defaults[name]; ok {
		return v
	}
	k, _ := configKey(name)
	return k.Default
}

// MinISR is the topic's min.insync.replicas, at least 1.
func (im *Image) MinISR(t *Topic) int {
	n, err := strconv.Atoi(im.Config(t, minISRKey))
	if err != nil {
		return 1 // not reached: values are checked before they are taken
	}
	return n
}

func (im *Image) uncleanElection(t *Topic) bool { return im.Config(t, uncleanKey) == "true" }

// Cluster-wide defaults that are no topic configurations.
const (
	defaultRFKey    = "default.replication.factor"
	defaultPartsKey = "num.partitions"
)

func (im *Image) defaultNumber(name string) int {
	n, err := strconv.Atoi(im.Defaults[name])
	if err != nil {
		return 1 // before the first controller said what it is configured to
	}
	return n
}

// defaultsRequest brings the image in line with this controller's configuration; nil if it is. KIP-966 keeps min.insync.replicas with the cluster for the
// same reason: the ELR is only sound if all agree on it.
func (c *Controller) defaultsRequest() kmsg.Request {
	want := map[string]string{}
	maps.Copy(want, c.cfg.Defaults)
	want[defaultRFKey] = strconv.Itoa(int(c.cfg.DefaultRF))
	want[defaultPartsKey] = strconv.Itoa(int(c.cfg.DefaultParts))
	if maps.Equal(want, c.image.Defaults) {
		return nil
	}
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType = kmsg.ConfigResourceTypeBroker // of no name: the cluster's default
	for _, name := range sortedKeys(want) {
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: kmsg.IncrementalAlterConfigOpSet, Value: kmsg.StringPtr(want[name])})
	}
	for _, name := range sortedKeys(c.image.Defaults) {
		if _, ok := want[name]; !ok {
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: kmsg.IncrementalAlterConfigOpDelete})
		}
	}
	q := kmsg.NewPtrIncrementalAlterConfigsRequest()
	q.Version = q.MaxVersion()
	q.Resources = append(q.Resources, res)
	return q
}

func (e *edit) alterConfigs(r *kmsg.IncrementalAlterConfigsRequest, internal bool) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	resp.Resources = []kmsg.IncrementalAlterConfigsResponseResource{}
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	times := map[resource]int{}
	for _, q := range r.Resources {
		times[resource{q.ResourceType, q.ResourceName}]++
	}
	for _, q := range r.Resources {
		var p problem
		switch {
		case times[resource{q.ResourceType, q.ResourceName}] > 1: // as in Kafka, none of them is carried out
			p = problem{kerr.InvalidRequest, fmt.Sprintf("%v %q is there more than once, expected each resource once", q.ResourceType, q.ResourceName)}
		case q.ResourceType == kmsg.ConfigResourceTypeTopic:
			p = e.alterTopicConfigs(q)
		case q.ResourceType == kmsg.ConfigResourceTypeBroker && q.ResourceName == "" && internal:
			e.setDefaults(q)
		default:
			p = problem{kerr.InvalidRequest, fmt.Sprintf("only topics can be configured at run time, not %v %q", q.ResourceType, q.ResourceName)}
		}
		resp.Resources = append(resp.Resources, kmsg.IncrementalAlterConfigsResponseResource{
			ResourceType: q.ResourceType, ResourceName: q.ResourceName, ErrorCode: p.Code(), ErrorMessage: p.Message(),
		})
	}
	return resp
}

func (e *edit) setDefaults(q kmsg.IncrementalAlterConfigsRequestResource) {
	next := maps.Clone(e.image.Defaults)
	for _, c := range q.Configs {
		if c.Op == kmsg.IncrementalAlterConfigOpSet && c.Value != nil {
			next[c.Name] = *c.Value
		} else {
			delete(next, c.Name)
		}
	}
	e.image.Defaults, e.changed = next, true
	for _, name := range sortedKeys(e.image.Topics) {
		e.resettle(name)
	}
}

func (e *edit) alterTopicConfigs(q kmsg.IncrementalAlterConfigsRequestResource) problem {
	t := e.image.Topics[q.ResourceName]
	if t == nil {
		return problem{kerr.UnknownTopicOrPartition, fmt.Sprintf("no topic %q", q.ResourceName)}
	}
	next, seen := maps.Clone(t.Configs), map[string]bool{}
	for _, c := range q.Configs {
		if seen[c.Name] {
			return problem{kerr.InvalidRequest, fmt.Sprintf("configuration %s is there twice", c.Name)}
		}
		seen[c.Name] = true
		switch c.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			if c.Value == nil {
				return problem{kerr.InvalidRequest, fmt.Sprintf("configuration %s is set to null", c.Name)}
			}
			next[c.Name] = *c.Value
		case kmsg.IncrementalAlterConfigOpDelete:
			if _, ok := configKey(c.Name); !ok {
				return problem{kerr.InvalidConfig, unknownConfig(c.Name).Error()}
			}
			delete(next, c.Name)
		default:
			return problem{kerr.InvalidConfig, fmt.Sprintf("configuration %s: only SET and DELETE are possible", c.Name)}
		}
	}
	if p := e.checkConfigs(next, len(t.Partitions[0].Replicas)); p.found() {
		return p
	}
	if !maps.Equal(next, t.Configs) {
		e.topic(t.Name).Configs = next
		e.resettle(t.Name)
	}
	return problem{}
}

// resettle applies a topic's new rules to its partitions: an ISR that is large enough now needs no ELR (records may be committed without its members from
// here on), and unclean election may have become allowed.
func (e *edit) resettle(name string) {
	for i := range e.image.Topics[name].Partitions {
		t := e.image.Topics[name]
		e.settle(t, int32(i), change{isr: t.Partitions[i].ISR, lost: none})
	}
}

// checkConfigs judges the configurations of a topic with that many replicas. A min.insync.replicas above them could never be met.
func (e *edit) checkConfigs(configs map[string]string, rf int) problem {
	for _, name := range sortedKeys(configs) {
		if err := checkConfig(name, configs[name]); err != nil {
			return problem{kerr.InvalidConfig, err.Error()}
		}
	}
	if v, ok := configs[minISRKey]; ok {
		if n, _ := strconv.Atoi(v); n > rf {
			return problem{kerr.InvalidConfig, fmt.Sprintf("%s is %d, but the topic has %d replicas", minISRKey, n, rf)}
		}
	}
	return problem{}
}
