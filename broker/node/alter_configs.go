package node

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/wire"
)

// handleAlterConfigs carries AlterConfigs out as the incremental request with the same effect: what is named is set, everything else is deleted.
func (n *Node) handleAlterConfigs(ctx context.Context, q wire.Request, body *kmsg.AlterConfigsRequest) kmsg.Response {
	incremental := kmsg.NewPtrIncrementalAlterConfigsRequest()
	incremental.Version, incremental.ValidateOnly = 1, body.ValidateOnly
	for _, r := range body.Resources {
		incremental.Resources = append(incremental.Resources, replacement(r))
	}
	q.API, q.Version, q.Body = n.table.Find(incremental.Key()), incremental.Version, incremental
	answer := n.forward(ctx, q, 0).(*kmsg.IncrementalAlterConfigsResponse)
	resp := body.ResponseKind().(*kmsg.AlterConfigsResponse)
	for _, r := range answer.Resources {
		resp.Resources = append(resp.Resources, kmsg.AlterConfigsResponseResource{
			ErrorCode: r.ErrorCode, ErrorMessage: r.ErrorMessage, ResourceType: r.ResourceType, ResourceName: r.ResourceName,
		})
	}
	return resp
}

// replacement sets the configurations of r and deletes all others.
func replacement(r kmsg.AlterConfigsRequestResource) kmsg.IncrementalAlterConfigsRequestResource {
	out := kmsg.NewIncrementalAlterConfigsRequestResource()
	out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
	for _, c := range r.Configs {
		set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		set.Name, set.Op, set.Value = c.Name, kmsg.IncrementalAlterConfigOpSet, c.Value
		out.Configs = append(out.Configs, set)
	}
	for _, k := range controller.ConfigKeys() {
		if slices.ContainsFunc(r.Configs, func(c kmsg.AlterConfigsRequestResourceConfig) bool { return c.Name == k.Name }) {
			continue
		}
		unset := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		unset.Name, unset.Op = k.Name, kmsg.IncrementalAlterConfigOpDelete
		out.Configs = append(out.Configs, unset)
	}
	return out
}
