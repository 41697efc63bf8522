// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
)

// addLimitDifferences reports the differences of one limit.
func (r *envoyFile) addLimitDifferences(e *envoyEntry, limit node) {
	if limit.field("unlimited").isTrue() {
		r.Differ(limit.at(), "unlimited: true is not counted.", "mete counts it with a limit of 1000000000 per second.", "")
	}
	if n := e.node.field("quota_mode"); n.isTrue() {
		r.Differ(n.at(), "quota_mode admits requests over the limit and reports them as metadata.", "mete admits them in mode shadow and reports them as shadow denials.", "")
	}
	if n := limit.field("replaces"); n.exists {
		r.Differ(n.at(), "replaces leaves out another limit when one request has both descriptors.",
			"mete decides one descriptor per request to /v1/take, and counts both.", "Send only the descriptor of the replacing limit.")
	}
	for _, name := range []string{"detailed_metric", "value_to_metric"} {
		if n := e.node.field(name); n.isTrue() {
			r.Differ(n.at(), name+" puts values of descriptors into names of metrics.", "mete counts per rule. Decisions are equal.", "'mete top' shows the busiest keys.")
		}
	}
	for _, p := range e.path() {
		if n := p.node.field("share_threshold"); n.isTrue() && !p.isWildcard() {
			r.Differ(n.at(), "share_threshold needs a value that ends with a star.", "mete ignores it here.", "")
		}
	}
}

// addFileDifferences reports the differences of a file.
func (r *envoyFile) addFileDifferences(file string) {
	if len(r.Rules) == 0 {
		return
	}
	r.Differ(file, "Envoy sends descriptors over gRPC.",
		fmt.Sprintf("mete expects them as attributes of POST /v1/take: %q: %q, and %q for each entry.", envoyDomain, r.domain, descriptorPrefix+"KEY"), "")
	r.Differ(file, "A request with several descriptors is over the limit if one of them is. All are counted.",
		"mete decides one descriptor per request.", "Send one request per descriptor, and deny the client if any decision denies it.")
	r.Differ(file, "A denied request with hits_addend above 1 is counted, so smaller requests after it are denied in the same window.",
		"mete charges allowed requests only. With a cost of 1, decisions are equal.", "")
	r.Differ(file, "A descriptor with an entry whose key is not in the file has no limit.",
		"The rules of mete ignore entries with unknown keys.", "Send only entries with keys from the file.")
	if slices.ContainsFunc(r.Rules, func(rule Rule) bool { return len(rule.Match) > 2 }) {
		r.Differ(file, "The order of entries matters: a different order is a different descriptor.", "mete ignores the order of attributes.", "")
	}
}
