package program

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Admin is what a library offers for administration; what it does not offer is nil. Calls may come again after one whose answer was lost: that a topic
// is already there, or already gone, is no error then.
type Admin struct {
	CreateTopic   func(topic string, partitions int32, retention string) error // with three replicas
	Partitions    func(topic string) (int, error)
	AddPartitions func(topic string, total int32) error
	SetRetention  func(topic, milliseconds string) error
	Retention     func(topic string) (string, error)
	Commit        func(group, topic string) error // offset 0 of partition 0, without being a member
	ListGroups    func() ([]string, error)
	GroupState    func(group string) (string, error)
	DeleteGroup   func(group string) error
	DeleteTopic   func(topic string) error
}

// Administer goes job.Count times through all calls, and checks what can be read back.
func Administer(ctx context.Context, job Job, a Admin) error {
	for i := range job.Count {
		topic, group := fmt.Sprintf("%s-%d", job.Topic, i), fmt.Sprintf("%s-group-%d", job.Topic, i)
		calls := []struct {
			name    string
			offered bool
			do      func() error
		}{
			{"create a topic", a.CreateTopic != nil, func() error { return a.CreateTopic(topic, 2, "3600000") }},
			{"describe it", a.Partitions != nil, func() error { return same("partitions", 2)(a.Partitions(topic)) }},
			{"read its configuration", a.Retention != nil, func() error { return same("retention.ms", "3600000")(a.Retention(topic)) }},
			{"add partitions", a.AddPartitions != nil, func() error { return a.AddPartitions(topic, 4) }},
			{"describe the larger one", a.AddPartitions != nil && a.Partitions != nil, func() error { return same("partitions", 4)(a.Partitions(topic)) }},
			{"alter its configuration", a.SetRetention != nil, func() error { return a.SetRetention(topic, "7200000") }},
			{"read the new configuration", a.SetRetention != nil && a.Retention != nil, func() error { return same("retention.ms", "7200000")(a.Retention(topic)) }},
			{"commit for a group without members", a.Commit != nil, func() error { return a.Commit(group, topic) }},
			{"list groups", a.Commit != nil && a.ListGroups != nil, func() error {
				groups, err := a.ListGroups()
				return same("listed", true)(slices.Contains(groups, group), err)
			}},
			{"describe the group", a.Commit != nil && a.GroupState != nil, func() error { return same("state", "Empty")(a.GroupState(group)) }},
			{"delete the group", a.Commit != nil && a.DeleteGroup != nil, func() error { return a.DeleteGroup(group) }},
			{"delete the topic", a.DeleteTopic != nil, func() error { return a.DeleteTopic(topic) }},
		}
		for _, call := range calls {
			if !call.offered {
				continue
			}
			if err := Patiently(ctx, call.name, call.do); err != nil {
				return err
			}
			Emit(Event{Event: "admin", Value: call.name})
		}
		time.Sleep(job.Pace)
	}
	return nil
}

// same checks an answer.
func same[T comparable](what string, want T) func(T, error) error {
	return func(got T, err error) error {
		if err == nil && got != want {
			err = fmt.Errorf("%s: %v, expected %v", what, got, want)
		}
		return err
	}
}
