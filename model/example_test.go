package model_test

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"ackproof/model"
)

// The operations of a register of one's own, here one that answers from a stale copy, are decided by porcupine with the specification of this package.
func ExampleCells() {
	var history []porcupine.Operation
	now := int64(0)
	record := func(client int, a model.Access) {
		now += 2
		history = append(history, porcupine.Operation{ClientId: client, Input: model.Call{Accesses: []model.Access{a}}, Call: now, Return: now + 1})
	}
	number := func(n int64) model.Value { return model.Value{Form: model.IntValue, Int: n} }
	register, stale := number(0), number(0)
	for n := range int64(2) {
		stale, register = register, number(n+1)
		record(1, model.Access{Verb: model.Put, Value: register})
	}
	cells := model.Cells(number(0))
	fmt.Println(porcupine.CheckOperations(cells, history))
	record(2, model.Access{Verb: model.Get, Value: stale})
	fmt.Println(porcupine.CheckOperations(cells, history))
	// Output:
	// true
	// false
}

// A contract says what a configuration permits: with acks=1 an acknowledged record may go with its leader.
func ExampleLogContract() {
	c := model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: 1})
	fmt.Println(c.Permitted(model.NoLoss, model.LostAcked, false))
	// Output: acks=1
}
