package wire

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersionsKey is the one key whose answer everybody must be able to read before anything is agreed.
const ApiVersionsKey int16 = 18

// apiVersionsAPI is ApiVersions.
//
// v0: KIP-35. v1: throttle time. v3: flexible, client software, features (KIP-511); the response header stays v0 for ever. v4: features may begin at
// version 0. v5 lets a client name the node that it expects; not served: clients fall back by the answer to a version that is too new.
func apiVersionsAPI() API { return of[kmsg.ApiVersionsRequest]("ApiVersions", 0, 4) }

// softwareName is what KIP-511 lets a client call itself and its version.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// ApiVersions answers an ApiVersions request from the table. A version that is too new gets layout v0 with UNSUPPORTED_VERSION and the list of keys
// all the same (KIP-511): that is how a client learns what to ask with.
func (t *Table) ApiVersions(q Request) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = q.Version
	if q.TooNew {
		resp.ErrorCode = kerr.UnsupportedVersion.Code
	} else if body, ok := q.Body.(*kmsg.ApiVersionsRequest); ok && q.Version >= 3 && !(softwareName.MatchString(body.ClientSoftwareName) && softwareName.MatchString(body.ClientSoftwareVersion)) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	}
	for _, key := range t.keys {
		a := t.byKey[key]
		if a.Internal {
			continue
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.Advertise, a.Max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	if q.Version >= 3 {
		// Clients offer the protocol of KIP-848 only where this feature is on.
		resp.FinalizedFeaturesEpoch = 0
		resp.SupportedFeatures = []kmsg.ApiVersionsResponseSupportedFeature{{Name: "group.version", MaxVersion: 1}}
		resp.FinalizedFeatures = []kmsg.ApiVersionsResponseFinalizedFeature{{Name: "group.version", MinVersionLevel: 1, MaxVersionLevel: 1}}
	}
	return resp
}
