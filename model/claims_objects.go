package model

// Linearizable is the claim of every small object: each operation takes effect at one instant between its invocation and its completion.
const Linearizable Claim = "linearizable"

// Nonlinearizable: no order of the operations that keeps real time is a run of the object.
const Nonlinearizable Anomaly = "nonlinearizable"
