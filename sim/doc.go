// Package sim runs the reference broker's core, the raw client, the log workload, the nemesis' schedules and the checkers in one process, under virtual time and
// a seeded order of events: the same case gives the same run, bit for bit. It decides nothing by itself: verdicts come from package linearizability, and from
// invariants that are looked at after every step.
//
// A Case is everything that decides a run. Run lets it happen: set up, load with faults, heal, demand progress, drain, check, as the harness does with real
// processes, and with the same code wherever that does not need a clock or a goroutine. sim/world is the kernel (time, coroutines, network), sim/cluster the
// broker's shell in it, attack.go carries out a schedule.
//
// What the simulation does not cover of the real program: broker/node's own goroutines and locks, the encoding of requests on sockets (requests travel as
// kmsg's structs, batches as bytes), the wal store and the control plane's log on disk, and franz-go's producer, which starts goroutines.
//
// Start reading at Case, then Run.
package sim
