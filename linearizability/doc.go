// Package linearizability decides from a history and a contract which promises of a log held, which broke, and which cannot be told, and proves
// what broke by a few operations. It knows nothing of systems, faults or files beyond the facts that it is given. Start reading at CheckLog, then
// settle in part.go, sweep.go, and window.go for the second opinion.
//
// # The log as a set of instants
//
// Linearizability is local (Herlihy and Wing), so each partition is checked alone. An operation has the interval from its invocation to its
// completion in the one journal; an append of unknown outcome ends never. Let T(k) be the instant at which offset k came into being. Appends
// take effect in the order of offsets, so T rises, and every rising T is the run of some log. Each operation only says how long the log was:
//
//   - an append acknowledged at k: inv ≤ T(k) ≤ ret; one of unknown outcome, found at k: inv ≤ T(k);
//   - a read that returned offset e, an answer that counted e: T(e) ≤ ret;
//   - a read that found nothing at f, an answer that the log ends at f: T(f) ≥ inv.
//
// Readers do not interact: a reader that needs L ≤ length ≤ U has a point in its interval iff T(L−1) ≤ ret and T(U) ≥ inv, the third
// condition T(L−1) ≤ T(U) being monotonicity. So the whole history says lo(k) ≤ T(k) ≤ hi(k), with T rising. That has a solution iff lo(j) ≤ hi(k)
// for all j ≤ k (then T(k) = max lo(j) over j ≤ k is one), that is iff lo(j) ≤ D(j) = min hi(k) over k ≥ j: one backward pass. A pair that fails names
// the operation that set lo(j), which began too late, and the one that set hi(k), which had known more before: a proof of two operations.
//
// Which bounds are used is the level. L1 takes hi from acknowledgements, L2 also from reads and answers: nobody sees what is not yet written.
// L3 also takes lo from readers: nobody misses what is written. Kafka promises L1 and L2 (real-time-order, and future-read of no-phantom). L3 is
// the opt-in claim read-after-ack: right after a change of leader the high watermark may lag.
//
// # Which record at which offset
//
// Before that it is settled which record each offset holds: the reads of the drain say so first, then earlier reads, then acknowledgements.
// Whoever disagrees is a finding (inconsistent-offset, replica-divergence); what an earlier reader or an acknowledgement claims and the final log, read
// past that offset or to its end, does not have, is gone (dirty-read, lost-acked). Where the contract lets acknowledged records go with a leader,
// acknowledgements alone place no record, and under unclean election only the final log does: real-time order is promised among records that last.
//
// Loss at the tail needs a drain that reached the end and began after the acknowledgement; otherwise it is undecided. Loss in the middle needs
// only a read of the drain past the offset: an offset above it exists, so this one does. A record the log itself lost is counted under no-loss only;
// undelivered and poll-skip are about readers that were not given what the log has. Offsets below the largest start ever answered are not required.
//
// # Holes
//
// In a dense log every offset below the known end was filled by somebody. An append of unknown outcome that nobody saw fits hole k iff it was
// invoked before D(k); D rises, so the sets of fitting appends are nested, and giving the earliest to the lowest hole is a maximum matching.
// Only unread holes need it; a hole that the drain read past is a gap for certain.
//
// Records of one append count each for itself: no claim promises that a batch appears at once or whole, and clients split batches. With batches
// of unknown outcome the exact question, whether whole batches can tile the unread holes, is strongly NP-hard (3-partition); where only parts of batches fit,
// the answer is undecided. With a complete drain there are no unread holes.
//
// # Visible end
//
// Two answers are compared if one had returned before the other was asked for and its leader epoch is not newer; see ends.
//
// # Cost
//
// Linear in operations and in the records that reads returned, plus sorting of what is not in order already: a logarithm for completions and for
// a producer's sequence numbers. Memory: 64 bytes an operation, 3 an event, 32 a run that was read, 12 a written record, 9 an offset,
// and 12 more for the partition at hand.
//
// # Second opinion
//
// porcupine decides windows of the same history by search, in a model that shares with the above only the settled content. See window. It is also the
// oracle in the tests, where an exhaustive search over small random histories, legal and damaged, has to agree with the sweep at every level.
//
// # How the checkers are checked
//
// Every checker of this package has an oracle that shares nothing with it but the history: a search through all orders, porcupine, or the definition applied
// literally (duel_test.go). Both decide small random histories, legal and damaged, with operations of unknown outcome, batches, trims, ties and dead clients:
//
//	go test ./linearizability                                                      a few thousand for each checker
//	go test ./linearizability -run '^$' -fuzz FuzzLog                              as long as one likes, guided by what they reach
//	HISTORIES=300000 go test ./linearizability -run Oracle -v -timeout 0           so many for each, with a table
//	go run ./ci/mutants                                                            whether the tests notice wrong edits of the checkers
//	ACKPROOF_MUTANTS=1000000 go test ./histories -run Mutants -timeout 0           so many damaged files for each importer
//
// # Not promised
//
// That a client's own refusals were right: a Fail is believed. That records of a batch appear together. That a trimmed record was still due. Time
// is the journal's order; clocks of other machines play no part.
package linearizability
