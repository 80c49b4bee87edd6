package group

import (
	"time"

	"ackproof/workloads/kafka"
)

// tendConsumer is the protocol of KIP-848: the member tells in heartbeats what it has, and is told what it shall have.
func (m *member) tendConsumer() {
	if m.joined && m.env.Now() < m.beat {
		return
	}
	if !m.joined {
		m.self.Generation = kafka.EpochJoin
	}
	got := m.kafka.ConsumerBeat(m.self, kafka.Beat{TopicID: m.cfg.Log.TopicID, Rebalance: m.cfg.Rebalance, Owned: m.owns(), Tell: m.tell})
	switch got.Code {
	case 0:
	case kafka.CodeUnknownMember, kafka.CodeFencedMemberEpoch, kafka.CodeFencedInstance:
		m.heed(got.Code)
		return
	default:
		m.tell = true
		m.pauseBeat()
		if !m.joined {
			m.env.Sleep(between(m.env, 20*time.Millisecond, 100*time.Millisecond))
		}
		return
	}
	newer := !m.joined || got.Epoch != m.self.Generation
	m.self.ID, m.self.Generation, m.joined, m.tell = got.ID, got.Epoch, true, false
	m.beat = m.env.Now() + m.cfg.Heartbeat
	all := m.owns()
	if got.Told {
		all = got.Assigned
	}
	gone := dropped(m.owns(), all)
	fresh := dropped(all, m.owns())
	m.giveBack(gone)
	if m.retired || !m.joined {
		return
	}
	if newer {
		m.own(all)
	} else {
		for _, p := range fresh {
			m.places[p] = &place{committed: -1}
		}
	}
	if len(gone)+len(fresh) > 0 { // the coordinator waits to hear of it
		m.tell, m.beat = true, 0
	}
}
