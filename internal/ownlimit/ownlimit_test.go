// SPDX-License-Identifier: Apache-2.0

package ownlimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ownlimit"
)

func compile(t *testing.T, spec bucket.Spec) bucket.Limit {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

func TestCheck(t *testing.T) {
	const token = bucket.Token
	ten := bucket.Rate{Tokens: 10 * token, Per: time.Second}
	tokens := compile(t, bucket.Spec{Capacity: 10 * token, Rate: ten})
	log := compile(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: ten})
	leaky := compile(t, bucket.Spec{Capacity: token, Queue: 4 * token, Rate: ten})
	for _, tt := range []struct {
		what   string
		limit  bucket.Limit
		cost   bucket.Tokens
		shards int
		want   string // of the error; "" is none
	}{
		{"a token", tokens, 0, 0, ""},
		{"all of it", tokens, 10 * token, 1, ""},
		{"shards", tokens, 0, 10, ""},
		{"no bucket", bucket.Limit{}, 0, 0, "bucket is required"},
		{"nothing is right", bucket.Limit{}, -1, -1, "cost -0.001: must be between 0"},
		{"too much", tokens, bucket.MaxTokens + 1, 0, "must be between 0"},
		{"more than the capacity", tokens, 10*token + 1, 0, "can ever admit"},
		{"more than a window", log, 11 * token, 0, "can ever admit"},
		{"more than bucket and queue", leaky, 6 * token, 0, "can ever admit"},
		{"negative shards", tokens, 0, -1, "-1 shards"},
		{"too many shards", tokens, 0, 33, "33 shards: must be between 0 and 32"},
		{"shards below a token", tokens, 0, 11, "each must hold a token"},
		{"shards of a log", log, 0, 2, "can be split"},
	} {
		err := ownlimit.Check(tt.limit, tt.cost, tt.shards)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q in it", tt.what, err, tt.want)
		}
	}
}
