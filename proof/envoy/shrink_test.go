// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"slices"

	"google.golang.org/protobuf/proto"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// shrink returns a smaller trial for which fails is still true. It removes requests, then descriptors of requests,
// then parts of the configuration.
func shrink(tr *trial, fails func(*trial) bool) *trial {
	tr = shrinkSteps(tr, fails)
	for i := range tr.steps {
		for j := len(tr.steps[i].request.Descriptors) - 1; j >= 0; j-- {
			small := &trial{tr.domains, slices.Clone(tr.steps)}
			req := proto.Clone(tr.steps[i].request).(*ratelimitv3.RateLimitRequest)
			req.Descriptors = slices.Delete(req.Descriptors, j, j+1)
			small.steps[i].request = req
			if len(req.Descriptors) > 0 && fails(small) {
				tr = small
			}
		}
	}
	tr = shrinkSteps(tr, fails)
	return &trial{shrinkNodes(tr.domains, func(domains []*node) bool { return fails(&trial{domains, tr.steps}) }), tr.steps}
}

// shrinkSteps removes runs of requests, from long runs to single requests.
func shrinkSteps(tr *trial, fails func(*trial) bool) *trial {
	for size := len(tr.steps) / 2; size >= 1; size /= 2 {
		for i := len(tr.steps) - size; i >= 0; i -= size {
			small := &trial{tr.domains, slices.Delete(slices.Clone(tr.steps), i, i+size)}
			if fails(small) {
				tr = small
			}
		}
	}
	return tr
}

// shrinkNodes removes nodes and flags.
func shrinkNodes(nodes []*node, fails func([]*node) bool) []*node {
	for i := len(nodes) - 1; i >= 0; i-- {
		if small := slices.Delete(slices.Clone(nodes), i, i+1); fails(small) {
			nodes = small
		}
	}
	for i := range nodes {
		with := func(n node) []*node {
			changed := slices.Clone(nodes)
			changed[i] = &n
			return changed
		}
		for j := len(nodes[i].flags) - 1; j >= 0; j-- {
			n := *nodes[i]
			n.flags = slices.Delete(slices.Clone(n.flags), j, j+1)
			if fails(with(n)) {
				nodes = with(n)
			}
		}
		n := *nodes[i]
		n.children = shrinkNodes(n.children, func(children []*node) bool {
			n.children = children
			return fails(with(n))
		})
		nodes = with(n)
	}
	return nodes
}
