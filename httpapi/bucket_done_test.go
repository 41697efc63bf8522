// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// Completed changes of a bucket are recorded in the audit log. Failed and unknown ones are not.
func TestBucket_Done(t *testing.T) {
	c := newClock()
	base, err := policy.Load([]byte(bucketRules), policy.Options{HashKey: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(c.read), base, mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{
		Admin: true, Overrides: m, Role: roleOfToken,
		Audit: auditBy(t, io.Discard, m, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(role, method, path, body string) *strings.Reader {
		t.Helper()
		w := do(h, method, path, body, "Authorization", "Bearer "+role, "Content-Type", "application/json")
		return strings.NewReader(w.Body.String())
	}
	const key = `"key":"token:user=canary"`
	ask("operate", "POST", "/v1/take", `{"attributes":{"query:user":"canary"},"cost":3.25}`)
	ask("operate", "POST", "/v1/bucket/reset", `{`+key+`,"reason":"by mistake"}`)
	ask("operate", "POST", "/v1/bucket/reset", `{`+key+`,"reason":"it is full"}`)
	ask("operate", "POST", "/v1/bucket/take", `{`+key+`,"tokens":99}`)
	ask("operate", "POST", "/v1/bucket/take", `{`+key+`,"tokens":1,"reason":"it is empty"}`)
	ask("operate", "POST", "/v1/bucket/take", `{"key":"nobody:user=x","tokens":1}`)
	ask("read", "POST", "/v1/bucket/reset", `{`+key+`,"reason":"r"}`)
	ask("operate", "POST", "/v1/reset", `{"attributes":{"query:user":"canary"}}`)
	for role, shown := range map[string]string{"operate": "token:user=canary", "read": "token:…"} {
		var list api.Overrides
		if err := json.NewDecoder(ask(role, "GET", "/v1/overrides", "")).Decode(&list); err != nil {
			t.Fatal(err)
		}
		want := []api.AuditEntry{
			{What: "reset", Key: shown, Tokens: 3250, Author: "kim", Role: "operate", From: "192.0.2.1", Reason: "by mistake"},
			{What: "taken", Key: shown, Tokens: 4000, Author: "kim", Role: "operate", From: "192.0.2.1"},
		}
		if len(list.Audit) != len(want) {
			t.Fatalf("%s: %+v, want %+v", role, list.Audit, want)
		}
		for i, w := range want {
			got := list.Audit[i]
			if w.ID, w.At = got.ID, got.At; got != w || got.ID == "" || got.At.IsZero() {
				t.Errorf("%s: %+v, want %+v", role, got, w)
			}
		}
	}
}
