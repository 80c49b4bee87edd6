package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ackproof/model"
)

// Contract says before the run what will be demanded, in about five lines: the configuration, what it promises, and what it permits.
func Contract(c model.Contract) string {
	acks := fmt.Sprint(c.Acks)
	if c.Acks == -1 {
		acks = "all"
	}
	var out strings.Builder
	out.WriteString(wrap("contract   ", fmt.Sprintf("%s on %s, %s × %s, acks=%s, min in sync %d, idempotence %s, unclean election %s, flush %s",
		c.Workload, c.System, plural(c.Partitions, "partition"), copies(c.Replication), acks, c.MinISR, onOff(c.Idempotent), onOff(c.Unclean), flush(c.FlushEach))))
	more := len(c.Promises)
	if p, ok := c.Promise(model.NoLoss); ok {
		out.WriteString(wrap("promised   ", p.Text))
		more--
	}
	var permitted []string
	for _, p := range c.Promises {
		for _, a := range sortedAnomalies(p.Permits) {
			permitted = append(permitted, fmt.Sprintf("%s (%s)", a, p.Permits[a]))
		}
	}
	if len(permitted) == 0 {
		permitted = []string{"nothing"}
	}
	out.WriteString(wrap("also       ", fmt.Sprintf("%d more promises, each with its answer at the end; permitted: %s", more, strings.Join(permitted, ", "))))
	return out.String()
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func flush(each bool) string {
	if each {
		return "before each ack"
	}
	return "at intervals"
}

func copies(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

func sortedAnomalies(m map[model.Anomaly]string) []model.Anomaly {
	return slices.Sorted(maps.Keys(m))
}
