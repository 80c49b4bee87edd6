package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// metadataAPI is Metadata.
//
// v0: an empty list asks for all topics. v1: null asks for all, an empty list for none; rack, controller id, internal flag. v2: cluster id. v4:
// whether topics may be created. v5: offline replicas. v7: leader epochs. v8: authorised operations. v9: flexible. v10: topic ids. v12: topics by id.
// v13: top-level error.
func metadataAPI() API { return of[kmsg.MetadataRequest]("Metadata", 0, 13) }
