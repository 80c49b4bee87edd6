package kafka

import (
	"fmt"
	"strings"
	"time"
)

// role is what a node of the cluster is.
type role int

const (
	combined role = iota
	brokerOnly
	controllerOnly
)

// properties is the configuration of one node. Every node has every time-out: followers, leaders and controllers read different ones.
func (c *Cluster) properties(n *node) []string {
	t, few := c.set.Timers, min(3, c.o.Replication)
	var listeners, advertised []string
	roles := map[role]string{combined: "broker,controller", brokerOnly: "broker", controllerOnly: "controller"}[n.role]
	if n.role != controllerOnly {
		listeners, advertised = []string{"PLAINTEXT://" + n.client}, []string{"PLAINTEXT://" + n.client}
	}
	if n.role != brokerOnly {
		listeners = append(listeners, "CONTROLLER://"+n.control)
	}
	lines := []string{
		"process.roles=" + roles,
		fmt.Sprintf("node.id=%d", n.ID()),
		"controller.quorum.voters=" + strings.Join(c.voters(), ","),
		"listeners=" + strings.Join(listeners, ","),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + strings.ReplaceAll(n.logs, `\`, `\\`),
		"",
		fmt.Sprintf("default.replication.factor=%d", c.o.Replication),
		fmt.Sprintf("offsets.topic.replication.factor=%d", few),
		fmt.Sprintf("transaction.state.log.replication.factor=%d", few),
		fmt.Sprintf("transaction.state.log.min.isr=%d", min(2, few)),
		"offsets.topic.num.partitions=6", // few, so that every failover hits some group
		"transaction.state.log.num.partitions=1",
		"auto.create.topics.enable=false",
		"auto.leader.rebalance.enable=false",
		"",
		millis("broker.session.timeout.ms", t.session),
		millis("broker.heartbeat.interval.ms", t.heartbeat),
		millis("controller.quorum.fetch.timeout.ms", t.quorumFetch),
		millis("controller.quorum.election.timeout.ms", t.election),
		millis("controller.quorum.election.backoff.max.ms", t.electionBackoff),
		millis("controller.quorum.request.timeout.ms", t.request),
		millis("replica.lag.time.max.ms", t.lag),
		millis("replica.fetch.wait.max.ms", t.fetchWait),
		millis("replica.fetch.backoff.ms", t.fetchBackoff),
		millis("replica.socket.timeout.ms", t.socket),
		millis("controller.socket.timeout.ms", t.socket),
		millis("socket.connection.setup.timeout.ms", t.connect),
		millis("socket.connection.setup.timeout.max.ms", t.connects),
		"",
		"group.initial.rebalance.delay.ms=200",
		millis("group.min.session.timeout.ms", min(t.group, 6*s)),
		"num.network.threads=2", "num.io.threads=4", "background.threads=2",
		"log.cleaner.dedupe.buffer.size=4194304",
	}
	if n.role != controllerOnly {
		lines = append(lines, "advertised.listeners="+strings.Join(advertised, ","), "inter.broker.listener.name=PLAINTEXT")
	}
	if c.in.Since(4, 0) {
		lines = append(lines, millis("group.consumer.session.timeout.ms", t.group), millis("group.consumer.min.session.timeout.ms", t.group),
			millis("group.consumer.heartbeat.interval.ms", t.groupHeartbeat), millis("group.consumer.min.heartbeat.interval.ms", t.groupHeartbeat),
			"share.coordinator.state.topic.num.partitions=1", fmt.Sprintf("share.coordinator.state.topic.replication.factor=%d", few))
	}
	if c.set.MinISRIn == inBrokers && n.role != controllerOnly {
		lines = append(lines, fmt.Sprintf("min.insync.replicas=%d", c.o.MinISR))
	}
	return lines
}

func (c *Cluster) voters() []string {
	var out []string
	for _, n := range c.nodes {
		if n.role != brokerOnly {
			out = append(out, fmt.Sprintf("%d@%s", n.ID(), n.control))
		}
	}
	return out
}

// logging says where the logs of a node go: to its standard output, which the run keeps. The controllers' decisions are there too, since they tell of unclean elections.
func (c *Cluster) logging() (name, content, property string) {
	if c.in.Since(4, 0) {
		return "log4j2.properties", `rootLogger.level=warn
rootLogger.appenderRef.c.ref=c
logger.controller.name=org.apache.kafka.controller
logger.controller.level=info
logger.log.name=org.apache.kafka.storage.internals.log
logger.log.level=info
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d{ISO8601} %p %c{1} %m%n
`, "-Dlog4j.configurationFile="
	}
	return "log4j.properties", `log4j.rootLogger=WARN, c
log4j.logger.org.apache.kafka.controller=INFO
log4j.logger.kafka.log=INFO
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
`, "-Dlog4j.configuration=file:"
}

func millis(name string, d time.Duration) string { return fmt.Sprintf("%s=%d", name, d.Milliseconds()) }
