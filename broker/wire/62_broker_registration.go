package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// brokerRegistrationAPI is BrokerRegistration: every start of a broker is a new registration with a new broker epoch (R19).
//
// v0: KIP-631. v3: the epoch before a clean shutdown (KIP-966), which decides whether the broker keeps its seats in the ELR.
func brokerRegistrationAPI() API {
	return internal(of[kmsg.BrokerRegistrationRequest]("BrokerRegistration", 3, 4))
}
