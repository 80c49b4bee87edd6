package kafka

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	versionElectLeaders = 2
	uncleanElection     = 1 // KIP-460
)

// ElectUncleanly asks for a leader of a partition at any price: an administrator's last resort where nobody who is known to have every record is left (KIP-460). It asks
// node after node and gives code 0 if one has seen to it, else the last node's code.
func (c *Client) ElectUncleanly(partition int32, limit time.Duration) (code int16) {
	code = NoRoute
	for _, node := range slices.Sorted(maps.Keys(c.cfg.Links)) {
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType, req.TimeoutMillis = versionElectLeaders, uncleanElection, int32(limit.Milliseconds())
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: c.cfg.Topic, Partitions: []int32{partition}}}
		kresp, err := c.ask(node, req, limit+c.cfg.DialTimeout)
		if err != nil {
			code = unanswered(err)
			continue
		}
		resp := kresp.(*kmsg.ElectLeadersResponse)
		if code = resp.ErrorCode; code != 0 {
			continue // most likely not the controller
		}
		code = NoAnswer
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if t.Topic == c.cfg.Topic && p.Partition == partition {
					code = p.ErrorCode
				}
			}
		}
		if code == 0 {
			return 0
		}
	}
	return code
}
