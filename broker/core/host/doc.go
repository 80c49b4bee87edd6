// Package host is what every host of the core does in the same way, the shell of a real broker (broker/node) and the simulator alike: it carries out storage effects on
// a Log, opens a replica on one, and translates between the core's inputs and effects and Kafka's requests. It is pure and holds no state; sockets, goroutines, clocks and
// the order of things are the host's own business. Start reading at CarryOut.
package host
