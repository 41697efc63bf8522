// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/metehq/mete/grpclimit"
)

// A call that an override blocks is denied like one that comes too early.
func TestUnary_Blocked(t *testing.T) {
	const rules = `{"rules": [` + byKey + `], "overrides": [{"id": "b", "action": "block", "match": {"header:x-api-key": "bad"},
		"reason": "an inner matter", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`
	client := limited(t, rules, grpclimit.Config{})
	var trailer metadata.MD
	_, err := client.UnaryCall(as(t.Context(), "x-api-key", "bad"), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
	code, retry, quota := details(t, err)
	if code != codes.ResourceExhausted || retry == nil || quota != nil || !strings.Contains(err.Error(), "blocked") || strings.Contains(err.Error(), "inner matter") {
		t.Errorf("got %v, retry %v, quota %v; want that it is blocked, and until when", err, retry, quota)
	}
	if _, err := client.UnaryCall(as(t.Context(), "x-api-key", "good"), &pb.SimpleRequest{}); err != nil {
		t.Errorf("another caller: %v", err)
	}
}
