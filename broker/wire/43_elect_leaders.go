package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// electLeadersAPI is ElectLeaders.
//
// v0: preferred election (KIP-183). v1: unclean election (KIP-460). v2: flexible.
func electLeadersAPI() API { return of[kmsg.ElectLeadersRequest]("ElectLeaders", 0, 2) }
