package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// envelopeAPI is Envelope: a client's request to the controller, passed on by another broker.
//
// v0: KIP-590. The data is the client's request with its header, the answer's data the response with its header.
func envelopeAPI() API { return internal(of[kmsg.EnvelopeRequest]("Envelope", 0, 0)) }
