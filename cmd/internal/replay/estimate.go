// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// An estimate sums up what requests to language models reserved under one limit, and what their responses cost.
type estimate struct {
	limit             *policy.Limit
	requests          int64
	below             int64 // requests that reserved less than their cost
	reserved, charged bucket.Tokens
}

// Settle counts the settlement of a request to a language model.
func (s *Stats) Settle(settled *policy.Settlement) {
	if !settled.Limit.AI() {
		return
	}
	i := slices.IndexFunc(s.estimates, func(e *estimate) bool { return e.limit == settled.Limit })
	if i < 0 {
		i = len(s.estimates)
		s.estimates = append(s.estimates, &estimate{limit: settled.Limit})
	}
	e := s.estimates[i]
	e.requests++
	e.reserved += settled.Reserved
	e.charged += settled.Charged
	if settled.Charged > settled.Reserved {
		e.below++
	}
}

// estimateSheet returns a table of the estimates and the real costs of requests to language models.
func (s *Stats) estimateSheet(page bool) *sheet {
	t := &sheet{ID: "estimates", Title: "Estimates of language models", Columns: []column{
		{Kind: "mono", text: "LIMIT", Page: "Limit"}, {Kind: "num", text: "SETTLED", Page: "Settled requests"}, {Kind: "num", text: "RESERVED", Page: "Reserved"},
		{Kind: "num", text: "CHARGED", Page: "Charged"}, {Kind: "num", text: "USED", Page: "Used"}, {Kind: "num", text: "ABOVE ESTIMATE", Page: "Requests above their estimate", drop: 1},
	}}
	for _, e := range s.estimates {
		t.add(textCell(e.limit.Name), textCell(number(e.requests, page)), textCell(number(e.reserved.Whole(), page)), textCell(number(e.charged.Whole(), page)),
			textCell(percent(int64(e.charged), int64(e.reserved))), textCell(number(e.below, page)))
	}
	return t
}
