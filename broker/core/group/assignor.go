package group

import (
	"cmp"
	"slices"
	"strings"
)

// subscriber is what an assignor knows of a member.
type subscriber struct {
	id       string
	instance *string
	topics   []*TopicInfo // existing ones, by name
	has      parts        // what it was given last time
}

// reads tells whether a partition exists and is subscribed to.
func (s *subscriber) reads(p part) bool {
	return slices.ContainsFunc(s.topics, func(t *TopicInfo) bool { return t.ID == p.topic && p.index < t.Partitions })
}

// assignors are the server-side ones of KIP-848; members come sorted by id. Each partition of a subscribed topic goes to exactly one of its subscribers.
var assignors = map[string]func([]subscriber) map[string]parts{"uniform": uniform, "range": ranges}

// assignorNames: the first one is the default (group.consumer.assignors).
var assignorNames = []string{"uniform", "range"}

// topicReaders is a topic with its subscribers, by their places in the list.
type topicReaders struct {
	*TopicInfo
	readers []int
}

// byTopic turns subscriptions round. Topics come by name.
func byTopic(members []subscriber) []topicReaders {
	at := map[[16]byte]int{}
	var out []topicReaders
	for i, m := range members {
		for _, t := range m.topics {
			j, seen := at[t.ID]
			if !seen {
				j = len(out)
				at[t.ID] = j
				out = append(out, topicReaders{TopicInfo: t})
			}
			out[j].readers = append(out[j].readers, i)
		}
	}
	slices.SortFunc(out, func(a, b topicReaders) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// uniform gives everybody as many partitions as anybody else, give or take one, as far as the subscriptions allow that, and moves as few as that takes.
func uniform(members []subscriber) map[string]parts {
	topics := byTopic(members)
	var got []parts
	if slices.ContainsFunc(topics, func(t topicReaders) bool { return len(t.readers) < len(members) }) {
		got = uniformMixed(members, topics)
	} else {
		got = uniformSame(members, topics)
	}
	out := make(map[string]parts, len(members))
	for i, m := range members {
		out[m.id] = got[i].sorted()
	}
	return out
}

// uniformSame is for members that all read the same topics.
func uniformSame(members []subscriber, topics []topicReaders) []parts {
	got := make([]parts, len(members))
	total := 0
	for _, t := range topics {
		total += int(t.Partitions)
	}
	if total == 0 {
		return got
	}
	least, extra := total/len(members), total%len(members)
	taken := map[part]bool{}
	for i, m := range members {
		for _, p := range m.has {
			if taken[p] || !m.reads(p) || len(got[i]) > least || len(got[i]) == least && extra == 0 {
				continue
			}
			if len(got[i]) == least {
				extra--
			}
			got[i], taken[p] = append(got[i], p), true
		}
	}
	free := unassigned(topics, taken)
	take := func(i int) { got[i], free = append(got[i], free[0]), free[1:] }
	for i := range members {
		for len(got[i]) < least {
			take(i)
		}
	}
	for i := range members {
		if extra > 0 && len(got[i]) == least {
			take(i)
			extra--
		}
	}
	return got
}

func unassigned(topics []topicReaders, taken map[part]bool) parts {
	var free parts
	for _, t := range topics {
		for index := range t.Partitions {
			if p := (part{t.ID, index}); !taken[p] {
				free = append(free, p)
			}
		}
	}
	return free
}

// uniformMixed is for members with different subscriptions: whoever has least takes, and then loads are levelled as long as a move makes two of them more alike.
func uniformMixed(members []subscriber, topics []topicReaders) []parts {
	owner, load := map[part]int{}, make([]int, len(members))
	give := func(p part, i int) {
		owner[p] = i
		load[i]++
	}
	taken := map[part]bool{}
	for i, m := range members {
		for _, p := range m.has {
			if !taken[p] && m.reads(p) {
				taken[p] = true
				give(p, i)
			}
		}
	}
	// Scarce topics first: whoever can read only those shall not find them taken.
	slices.SortStableFunc(topics, func(a, b topicReaders) int { return cmp.Compare(len(a.readers), len(b.readers)) })
	leastLoaded := func(t topicReaders) int {
		return slices.MinFunc(t.readers, func(a, b int) int { return cmp.Compare(load[a], load[b]) })
	}
	for _, t := range topics {
		for _, p := range unassigned([]topicReaders{t}, taken) {
			give(p, leastLoaded(t))
		}
	}
	for moved := true; moved; { // each move makes the sum of squares of the loads smaller
		moved = false
		for _, t := range topics {
			for index := range t.Partitions {
				p := part{t.ID, index}
				from, to := owner[p], leastLoaded(t)
				if load[from]-load[to] >= 2 {
					load[from]--
					give(p, to)
					moved = true
				}
			}
		}
	}
	got := make([]parts, len(members))
	for _, t := range topics {
		for index := range t.Partitions {
			p := part{t.ID, index}
			got[owner[p]] = append(got[owner[p]], p)
		}
	}
	return got
}

// ranges gives each subscriber of a topic a run of its partitions, in the order of the members, so that topics with as many partitions are split alike.
func ranges(members []subscriber) map[string]parts {
	out := make(map[string]parts, len(members))
	name := func(i int) string {
		if members[i].instance != nil {
			return *members[i].instance // a static member keeps its place over restarts
		}
		return members[i].id
	}
	for _, t := range byTopic(members) {
		slices.SortStableFunc(t.readers, func(a, b int) int { return strings.Compare(name(a), name(b)) })
		least, extra := int(t.Partitions)/len(t.readers), int(t.Partitions)%len(t.readers)
		next := int32(0)
		for place, i := range t.readers {
			run := least
			if place < extra {
				run++
			}
			for range run {
				out[members[i].id] = append(out[members[i].id], part{t.ID, next})
				next++
			}
		}
	}
	for _, m := range members {
		out[m.id] = out[m.id].sorted()
	}
	return out
}
