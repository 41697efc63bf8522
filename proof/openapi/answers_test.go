// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"fmt"
	"slices"
	"testing"
)

// The document describes every response of the real server, and a server gives every response of the
// document.
func TestAnswers(t *testing.T) {
	s := newService(t)
	s.askCorpus(t)
	s.askHolds(t)
	s.provoke(t)
	s.provokeBusy(t)
	s.provokeTooMany(t) // last: the server rejects this address for a while
	newOutage(t, s.seen).askAll(t)
	for path, item := range s.doc.Paths.Map() {
		for method, o := range item.Operations() {
			for status, answer := range o.Responses.Map() {
				var kinds []string
				for media := range answer.Value.Content {
					kinds = append(kinds, media)
				}
				if len(kinds) == 0 {
					kinds = []string{""}
				}
				for _, media := range kinds {
					key := fmt.Sprintf("%s %s %s %s", method, path, status, media)
					if !s.seen[key] && !slices.Contains(unseen, key) {
						t.Errorf("the document has %s, and no server says it here", key)
					}
				}
			}
		}
	}
}

// unseen are answers that need more than these tests do.
var unseen = []string{
	"GET /metrics 200 application/openmetrics-text", // where a scraper asks for it

	// Of a reader, of a server that records violations: tests of package httpapi have them.
	"GET /v1/violations 403 application/problem+json", "GET /v1/violations.csv 403 application/problem+json", "GET /v1/violations/histogram 403 application/problem+json",

	// Of a limit with shards: tests of package client have it.
	"POST /v1/hold 409 application/problem+json",

	// Of too many streams, or at the end of the server.
	"GET /v1/traffic/stream 503 application/problem+json", "GET /v1/watch 503 application/problem+json",
}
