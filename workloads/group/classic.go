package group

import (
	"time"

	"ackproof/workloads/kafka"
)

// tendClassic is the classic protocol: heartbeats, and a round of joins whenever the coordinator asks for one.
func (m *member) tendClassic() {
	if m.joined {
		if m.env.Now() < m.beat {
			return
		}
		switch code := m.kafka.Heartbeat(m.self); code {
		case kafka.CodeRebalanceInProgress:
		case 0:
			m.beat = m.env.Now() + m.cfg.Heartbeat
			return
		case kafka.CodeUnknownMember, kafka.CodeIllegalGeneration, kafka.CodeFencedInstance:
			m.heed(code)
		default: // the coordinator is away: the session goes on, as far as the member knows
			m.pauseBeat()
			return
		}
	}
	m.joined = false
	if m.group.Protocol == Eager {
		m.giveBack(m.owns())
	}
	if m.retired {
		return
	}
	m.join()
}

// pauseBeat puts the next heartbeat off a little.
func (m *member) pauseBeat() {
	m.beat = m.env.Now() + between(m.env, 30*time.Millisecond, 100*time.Millisecond)
}

// assignor is the name under which the members agree on how to assign.
func (m *member) assignor() string {
	if m.group.Protocol == Cooperative {
		return "cooperative-sticky"
	}
	return "range"
}

// join takes part in one round: join, assign if it falls to this member, sync. Whatever goes wrong is left to the next turn.
func (m *member) join() {
	mine := metadata{m.cfg.Log.Topic, nil, -1} // whoever has given everything back has nothing to tell; so a static member that is back says what it said before
	if m.group.Protocol == Cooperative {
		mine.owned, mine.generation = m.owns(), m.self.Generation
	}
	got := m.kafka.Join(m.self, kafka.Joining{Session: m.cfg.Session, Rebalance: m.cfg.Rebalance, Assignor: m.assignor(), Metadata: mine.encode()})
	switch got.Code {
	case 0:
	case kafka.CodeMemberIDRequired:
		m.self.ID = got.ID
		return
	case kafka.CodeUnknownMember, kafka.CodeIllegalGeneration, kafka.CodeFencedInstance:
		m.heed(got.Code)
		return
	default:
		m.env.Sleep(between(m.env, 20*time.Millisecond, 100*time.Millisecond))
		return
	}
	before := m.self.Generation
	m.self.ID, m.self.Generation = got.ID, got.Generation
	var assignments map[string][]byte
	if got.Leads {
		assignments = assign(m.group.Protocol == Cooperative, m.cfg.Log.Topic, m.cfg.Log.Partitions, got.Members)
	}
	raw, code := m.kafka.Sync(m.self, m.assignor(), assignments)
	if code != 0 {
		switch code {
		case kafka.CodeUnknownMember, kafka.CodeIllegalGeneration, kafka.CodeFencedInstance:
			m.heed(code)
		default:
			m.self.Generation = before // what it has it was given then
			m.env.Sleep(between(m.env, 5*time.Millisecond, 40*time.Millisecond))
		}
		return
	}
	all := decodeAssignment(raw, m.cfg.Log.Topic)
	m.joined = true
	m.beat = m.env.Now() + m.cfg.Heartbeat
	gone := dropped(m.owns(), all)
	m.giveBack(gone)
	if m.retired {
		return
	}
	if !m.joined { // the commit learned that the round is over
		return
	}
	m.own(all)
	if len(gone) > 0 { // KIP-429: what was given back is assigned in another round
		m.joined = false
	}
}
