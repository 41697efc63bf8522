// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
)

// A bucket action by key is logged with the masked key and stored with the real one.
func TestActivity(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	for range 3 {
		s.take("192.0.2.77")
	}
	const key = "client:ip=192.0.2.77"
	for _, step := range []struct {
		token, path, body string
		status            int
	}{
		{operatorToken, "/v1/bucket/reset", `{"key":"` + key + `","reason":"a mistake of theirs"}`, 200},
		{ownerToken, "/v1/bucket/take", `{"key":"` + key + `","tokens":2}`, 200},
		{readerToken, "/v1/bucket/reset", `{"key":"` + key + `","reason":"r"}`, 403},
		{operatorToken, "/v1/bucket/reset", `{"key":"clint:ip=192.0.2.77","reason":"r"}`, 404},
		{"", "/v1/bucket/reset", `{"key":"` + key + `","reason":"r"}`, 401},
		{operatorToken, "/v1/reset", `{"attributes":{"ip:address":"192.0.2.78"}}`, 200},
	} {
		if status, text := s.as(step.token, "POST", step.path, step.body); status != step.status {
			t.Errorf("%s %s: %d %s, want %d", step.path, step.body, status, text, step.status)
		}
	}
	list := func(token string) (x api.Activities) {
		t.Helper()
		status, text := s.as(token, "GET", "/v1/activity", "")
		if err := json.Unmarshal([]byte(text), &x); status != http.StatusOK || err != nil {
			t.Fatalf("GET /v1/activity: %d %s", status, text)
		}
		return x
	}
	all, masked := list(operatorToken), list(readerToken)
	want := []struct {
		what, by, key, reason string
		status                int
	}{ // newest first; requests without a token are not listed
		{"reset", "on-call", "", "", 200},
		{"bucket/reset", "on-call", "clint:ip=192.0.2.77", "r", 404},
		{"bucket/reset", "grafana", "", "", 403},
		{"bucket/take", "deploy", key, "", 200},
		{"bucket/reset", "on-call", key, "a mistake of theirs", 200},
	}
	if len(all.Activity) != len(want) {
		t.Fatalf("%+v", all.Activity)
	}
	for i, w := range want {
		if got := all.Activity[i]; got.What != w.what || got.By != w.by || got.Key != w.key || got.Reason != w.reason || got.Status != w.status || got.From != "127.0.0.1" || got.At.IsZero() {
			t.Errorf("%d: %+v, want %+v", i, got, w)
		}
	}
	shown := masked.Activity[4].Key
	if !masked.Masked || !strings.HasPrefix(shown, "client:~") || masked.Activity[4].Reason == "" {
		t.Errorf("masked: %+v", masked)
	}
	log := s.log.String()
	for _, line := range []string{
		`what=bucket/reset by=on-call role=operate from=127.0.0.1 status=200 key=` + shown + ` reason="a mistake of theirs"`,
		`what=bucket/take by=deploy role=configure from=127.0.0.1 status=200 key=` + shown + ` reason=""`,
		`what=bucket/reset by=grafana role=read from=127.0.0.1 status=403`, `what=bucket/reset by="" role=none`,
	} {
		if !strings.Contains(log, line) {
			t.Errorf("the log has no %s:\n%s", line, log)
		}
	}
	if strings.Contains(log, "192.0.2.77") {
		t.Error("the log has the key")
	}
}

func TestActivity_IsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	for range 230 {
		s.as(operatorToken, "POST", "/v1/refund", `{}`)
	}
	s.as(operatorToken, "POST", "/v1/reset", `{"attributes":{}}`)
	var x api.Activities
	_, text := s.as(operatorToken, "GET", "/v1/activity", "")
	if err := json.Unmarshal([]byte(text), &x); err != nil || len(x.Activity) != 200 || x.Activity[0].What != "reset" || x.Activity[199].What != "refund" {
		t.Errorf("%d, %v", len(x.Activity), err)
	}
}

// Servers that share a store show, reset and take from the same bucket. One finds a
// masked key in its own lists alone.
func TestBucket_IsShared(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := e.patient(t, burst("5"))
		c.AdminTokens, c.HashKey = withTokens().AdminTokens, "the same key for both of them"
		a, b := start(t, c), start(t, c)
		const key = "client:ip=192.0.2.9"
		for range 6 {
			a.take("192.0.2.9")
		}
		look := func(s *running, key string) (x api.Bucket, status int) {
			t.Helper()
			status, text := s.as(readerToken, "GET", "/v1/bucket?key="+url.QueryEscape(key), "")
			if err := json.Unmarshal([]byte(text), &x); err != nil {
				t.Fatalf("%d %s", status, text)
			}
			return x, status
		}
		seen, _ := look(b, key)
		if seen.Remaining.String() != "0" || seen.Capacity.String() != "5" || seen.Masked || seen.RetryAfter == 0 {
			t.Errorf("the other server shows %+v", seen)
		}
		var top api.Top // who may not see keys is shown masked ones
		_, answer := a.as(readerToken, "GET", "/v1/top", "")
		if err := json.Unmarshal([]byte(answer), &top); err != nil || len(top.Keys) != 1 || top.Keys[0].Key == key {
			t.Fatalf("the top keys: %s", answer)
		}
		masked := top.Keys[0].Key
		if x, status := look(a, masked); status != http.StatusOK || x.Remaining.String() != "0" || x.Key != masked {
			t.Errorf("by its masked key: %d %+v", status, x)
		}
		if _, status := look(b, masked); status != http.StatusNotFound {
			t.Errorf("by its masked key at the other server: %d, want 404", status)
		}
		var reset api.BucketReset
		_, text := b.as(operatorToken, "POST", "/v1/bucket/reset", `{"key":"`+key+`","reason":"r"}`)
		if err := json.Unmarshal([]byte(text), &reset); err != nil || !strings.HasPrefix(reset.Given.String(), "4.99") && reset.Given.String() != "5" {
			t.Errorf("reset: %s", text)
		}
		if x, _ := look(a, key); x.Remaining.String() != "5" || x.FullAfter != 0 {
			t.Errorf("after the reset: %+v", x)
		}
		var undone api.BucketTake
		_, text = a.as(operatorToken, "POST", "/v1/bucket/take", `{"key":"`+key+`","tokens":`+reset.Given.String()+`}`)
		if err := json.Unmarshal([]byte(text), &undone); err != nil || undone.Taken != reset.Given {
			t.Errorf("undo: %s", text)
		}
		if got := b.take("192.0.2.9"); got != http.StatusTooManyRequests {
			t.Errorf("a take after the undo: %d, want 429", got)
		}
		e.server.Kill()
		if _, status := look(a, key); status != http.StatusServiceUnavailable {
			t.Errorf("without the store: %d, want 503", status)
		}
	})
}
