package reference

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"ackproof/systems/process"
)

// properties is the configuration of one node. Each node has its own view of the others' addresses, which the run's network gives it.
func (c *Cluster) properties(n *process.Node) ([]string, error) {
	voters := make([]string, len(c.nodes))
	for i, other := range c.nodes {
		addr := other.Addr()
		if other != n {
			var err error
			if addr, err = c.o.Network.NodeLink(n.ID(), other.ID(), other.Addr()); err != nil {
				return nil, fmt.Errorf("reference: address of n%d for n%d: %w", other.ID(), n.ID(), err)
			}
		}
		voters[i] = fmt.Sprintf("%d@%s", other.ID(), addr)
	}
	lines := []string{
		fmt.Sprintf("node.id=%d", n.ID()),
		"listeners=PLAINTEXT://" + n.Addr(),
		"advertised.listeners=PLAINTEXT://" + n.Addr(),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"log.dirs=" + escape(n.Data()),
		"ackproof.exit.with.parent=true",
		"",
		fmt.Sprintf("default.replication.factor=%d", c.o.Replication),
		fmt.Sprintf("min.insync.replicas=%d", c.o.MinISR),
		fmt.Sprintf("unclean.leader.election.enable=%t", c.o.Unclean),
		"auto.create.topics.enable=false",
		fmt.Sprintf("ackproof.allow.single.copy=%t", c.o.Replication == 1),
		"",
		fmt.Sprintf("broker.session.timeout.ms=%d", sessionTimeout.Milliseconds()),
		fmt.Sprintf("broker.heartbeat.interval.ms=%d", heartbeatEach.Milliseconds()),
		fmt.Sprintf("replica.lag.time.max.ms=%d", lagTime.Milliseconds()),
		fmt.Sprintf("replica.fetch.wait.max.ms=%d", fetchWait.Milliseconds()),
		fmt.Sprintf("leader.imbalance.check.interval.seconds=%d", int(rebalanceEach.Seconds())),
		fmt.Sprintf("ackproof.raft.tick.ms=%d", raftTick.Milliseconds()),
		fmt.Sprintf("controller.quorum.election.timeout.ms=%d", electionTimeout.Milliseconds()),
		"",
		fmt.Sprintf("offsets.topic.num.partitions=%d", groupPartitions),
		fmt.Sprintf("offsets.topic.replication.factor=%d", c.o.Replication),
		fmt.Sprintf("group.min.session.timeout.ms=%d", groupSession.Milliseconds()),
		fmt.Sprintf("group.initial.rebalance.delay.ms=%d", groupDelay.Milliseconds()),
		fmt.Sprintf("group.consumer.session.timeout.ms=%d", groupSession.Milliseconds()),
		fmt.Sprintf("group.consumer.heartbeat.interval.ms=%d", groupHeartbeat.Milliseconds()),
	}
	if c.o.FlushEach {
		lines = append(lines, "log.flush.interval.messages=1")
	}
	if c.o.Plant != "" {
		lines = append(lines, "ackproof.plant="+c.o.Plant)
	}
	return lines, nil
}

// escape a value for a .properties file.
func escape(v string) string { return strings.ReplaceAll(v, `\`, `\\`) }

func thisExecutable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("reference: find the running executable: %w", err)
	}
	return exe, nil
}

// buildVersion is the module's version, or the revision that it was built from.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}
