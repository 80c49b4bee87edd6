package kafka

import (
	"fmt"

	"ackproof/model"
)

// effectiveMinISR is the min.insync.replicas that holds for the topic. With eligible leader replicas it becomes a dynamic default of the cluster, made from the file of the
// controller; what the files of brokers say is ignored, without a word.
func (c *Cluster) effectiveMinISR() int {
	if c.set.MinISRIn == inBrokers && c.keepELR && c.set.Controllers > 0 {
		return 1 // Kafka's default: the files of the controllers do not name it
	}
	return c.o.MinISR
}

// Contract implements systems.System. Kafka flushes a partition's log only where flush.messages or flush.ms says so, and otherwise trusts the other copies; so what the loss of
// power may take follows from who lost it.
func (c *Cluster) Contract() model.Contract {
	return model.LogContract(model.Contract{
		System: "kafka", Workload: "log", Partitions: c.o.Partitions, Replication: c.o.Replication, MinISR: c.effectiveMinISR(), Acks: c.o.Acks,
		Idempotent: c.o.Idempotent, Unclean: c.o.Unclean, FlushEach: c.o.FlushEach, Dense: true, LivenessBoundMS: livenessBound.Milliseconds(),
	})
}

// Lint implements systems.Linter.
func (c *Cluster) Lint() []string {
	var out []string
	if e := c.effectiveMinISR(); e != c.o.MinISR {
		out = append(out, fmt.Sprintf("min.insync.replicas is %d in the files of the brokers, and %d holds: with eligible leader replicas (KIP-966) the file of the controllers decides, and it does not name it. "+
			"Set it for the topic", c.o.MinISR, e))
	}
	if c.o.Acks == -1 && c.effectiveMinISR() == 1 {
		out = append(out, "acks=all with min.insync.replicas 1: a leader that is alone acknowledges what nobody else has")
	}
	if c.o.Acks != -1 && c.o.MinISR > 1 {
		out = append(out, fmt.Sprintf("acks=%d: min.insync.replicas %d does not count for such writes", c.o.Acks, c.o.MinISR))
	}
	if c.o.Acks == -1 && c.o.Replication > 1 && c.o.MinISR == c.o.Replication {
		out = append(out, fmt.Sprintf("min.insync.replicas is %d of %d copies: one node that is down stops all writes", c.o.MinISR, c.o.Replication))
	}
	if c.o.Unclean {
		out = append(out, "unclean.leader.election.enable=true: a copy that lacks acknowledged records may lead, and what it lacks is gone")
	}
	if c.o.Acks == -1 && !c.o.FlushEach && !c.keepELR && c.effectiveMinISR() > 1 {
		out = append(out, "eligible leader replicas are off: a leader that was left alone, loses its power and is back first may lead without what was acknowledged (KIP-966)")
	}
	if c.set.Controllers == 0 && c.o.Nodes < 2*c.o.Replication-1 && c.o.Nodes <= 3 {
		out = append(out, "every node is a controller too: with two of three down there is no quorum, and nothing changes any more, in-sync sets included")
	}
	return out
}
