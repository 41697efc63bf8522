// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"testing"

	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
)

func TestRequest_Usage(t *testing.T) {
	r, err := next(`{"at":1,"ai":{"model":"m"},"status":200,"usage":{"input":1,"cached":2,"cache_write":3,"output":4,"reasoning":5}}`, trace.FormatAuto)
	if err != nil {
		t.Fatal(err)
	}
	if res := r.Response(); res.Usage == nil || *res.Usage != (policy.TokenUsage{Input: 1, Cached: 2, CacheWrite: 3, Output: 4, Reasoning: 5}) || res.Model != "m" {
		t.Errorf("response %+v", res)
	}
	if r, err = next(`{"at":1,"ai":{"model":"m"},"status":200}`, trace.FormatAuto); err != nil || r.Response().Usage != nil {
		t.Errorf("a line without usage: %v, %v", r.Response().Usage, err)
	}
}
