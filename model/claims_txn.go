package model

// The claims of transactions.
const (
	// Atomicity: of a transaction over logs all records are there or none, and its records are readable to others once it has committed.
	Atomicity Claim = "atomicity"
	// Serializability: an order of the transactions exists that explains what they read. Which order counts is the level that was asked for.
	Serializability Claim = "serializability"
)

// The anomalies of transactions. Those whose names begin with G are Adya's; each but G1a and G1b is a cycle of dependencies. A cycle's sentence
// says which dependencies it is made of, and whether it needs the order of a process or real time.
const (
	G0                Anomaly = "G0"                 // a cycle of write after write
	G1a               Anomaly = "G1a"                // what an aborted transaction wrote was read
	G1b               Anomaly = "G1b"                // what a transaction wrote and then wrote over was read by another
	G1c               Anomaly = "G1c"                // a cycle of write after write and read after write
	GSingle           Anomaly = "G-single"           // a cycle with one write after read (read skew)
	GNonadjacent      Anomaly = "G-nonadjacent"      // a cycle with several, no two of which follow each other
	G2Item            Anomaly = "G2-item"            // a cycle with several, two of which follow each other (write skew)
	LostUpdate        Anomaly = "lost-update"        // two transactions read the same version and both wrote the next
	Internal          Anomaly = "internal"           // a transaction did not see its own writes, or what it had read before
	IncompatibleOrder Anomaly = "incompatible-order" // two reads of one object that no order of its versions explains
	TornTxn           Anomaly = "torn-txn"           // some records of a committed transaction are in the logs, others are not
	PrecommittedRead  Anomaly = "precommitted-read"  // a transaction over logs was given its own records before it committed
)
