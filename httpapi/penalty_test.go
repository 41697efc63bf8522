// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
)

const lockout = `{"name": "login", "limit_keys": ["user"], "penalty": {"first": "1m", "factor": 2, "most": "1h"}, "algorithm_config": {"rps": 1, "burst": 1}}`

// Answers show a running penalty with its level, and explanations when it ends.
func TestPenalty(t *testing.T) {
	h, clock := explaining(t, lockout)
	const request = `{"attributes":{"user":"a"}}`
	post(h, "/v1/take", request)
	wantAnswer(t, h, "/v1/take", request, http.StatusOK, `{"allowed":false,"rule":"login","reason":"token_bucket_exceeded","retry_after":60,"degraded":false,`+
		`"limits":[{"rule":"login","limit":"login","remaining":0,"retry_after":60,"full_after":60,"penalty":{"left":60,"level":1}}]}`)
	clock.advance(time.Minute)
	wantAnswer(t, h, "/v1/peek", request, http.StatusOK, `{"allowed":true,"rule":"login","reason":"","retry_after":0,"degraded":false,`+
		`"limits":[{"rule":"login","limit":"login","remaining":1,"retry_after":0,"full_after":0}]}`)
	post(h, "/v1/take", request)
	post(h, "/v1/take", request)
	clock.advance(time.Second)

	var e api.Explanation
	if err := json.Unmarshal(post(h, "/v1/explain", request).Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	rule := e.Rules[0]
	if !strings.HasSuffix(rule.Why, "; login is under a penalty until 2023-11-14 22:16:20 UTC, level 2") {
		t.Errorf("why %q", rule.Why)
	}
	if p := rule.Limits[0].Penalty; p == nil || p.Left != api.Seconds(119*time.Second) || p.Level != 2 {
		t.Errorf("penalty %+v, want 119 s of level 2", p)
	}
	if len(rule.Facts) != 1 || rule.Facts[0].Field != "penalty" {
		t.Errorf("facts %+v, want the penalty", rule.Facts)
	}

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/bucket?key=login:user=a", nil))
	var b api.Bucket
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if b.Penalty == nil || b.Penalty.Level != 2 || b.RetryAfter != api.Seconds(119*time.Second) || b.Remaining != 0 {
		t.Errorf("bucket %+v with penalty %+v, want 119 s of level 2", b, b.Penalty)
	}
	post(h, "/v1/reset", request)
	wantAnswer(t, h, "/v1/take", request, http.StatusOK, `{"allowed":true,"rule":"login","reason":"","retry_after":0,"degraded":false,`+
		`"limits":[{"rule":"login","limit":"login","remaining":0,"retry_after":0,"full_after":1}]}`)
}

// A rule in shadow keeps a penalty, which no answer shows.
func TestPenalty_Shadow(t *testing.T) {
	h, _ := newAPI(t, strings.Replace(lockout, `"limit_keys"`, `"mode": "shadow", "limit_keys"`, 1), httpapi.Config{Admin: true})
	for range 3 {
		wantAnswer(t, h, "/v1/take", `{"attributes":{"user":"a"}}`, http.StatusOK, `{"allowed":true,"rule":"","reason":"","retry_after":0,"degraded":false,"limits":[]}`)
	}
	var e api.Explanation
	if err := json.Unmarshal(post(h, "/v1/explain", `{"attributes":{"user":"a"}}`).Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	if p := e.Rules[0].Limits[0].Penalty; p == nil || p.Level != 1 {
		t.Errorf("penalty %+v of the rule in shadow, want level 1", p)
	}
}
