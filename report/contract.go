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
	out.WriteString(wrap("contract   ", fmt.Sprintf("%s, workload %s: %s × %s, min.insync.replicas=%d, acks=%s, idempotence %s, unclean election %s, flush %s",
		c.System, c.Workload, plural(c.Partitions, "partition"), copies(c.Replication), c.MinISR, acks,
		onOff(c.Idempotent), onOff(c.Unclean), flush(c.FlushEach))))
	if p, ok := c.Promise(model.NoLoss); ok {
		out.WriteString(wrap("promised   ", p.Text))
	}
	var names, permitted []string
	for _, p := range c.Promises {
		if p.Claim != model.NoLoss {
			names = append(names, string(p.Claim))
		}
		for _, a := range sortedAnomalies(p.Permits) {
			permitted = append(permitted, fmt.Sprintf("%s (%s)", a, p.Permits[a]))
		}
	}
	out.WriteString(wrap("also       ", strings.Join(names, ", ")))
	if len(permitted) == 0 {
		permitted = []string{"nothing"}
	}
	out.WriteString(wrap("permitted  ", strings.Join(permitted, ", ")))
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
