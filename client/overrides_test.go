// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// administrator is a client of a server that has overrides.
func administrator(t *testing.T) *client.Client {
	t.Helper()
	base, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 10, "burst": 2}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, base, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Documents: store, Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true, Overrides: m})
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, h)
}

func TestClient_Overrides(t *testing.T) {
	c, ctx := administrator(t), context.Background()
	o := api.Override{Action: "block", Match: json.RawMessage(`{"header:x-api-key":"k1"}`), Reason: "r&d", Author: "kim", ExpiresAt: time.Now().Add(time.Hour)}
	made, err := c.PutOverride(ctx, o)
	if err != nil || made.ID == "" || made.State != string(overrides.StateActive) || made.Source != string(overrides.SourceAdmin) || !made.ExpiresAt.Equal(o.ExpiresAt) {
		t.Fatalf("made %+v, %v; want it in force, with an ID", made, err)
	}
	d, err := c.Take(ctx, request(0))
	if err != nil || d.Allowed || d.Reason != mete.ReasonBlocked || d.Override != made.ID {
		t.Errorf("take: %+v, %v; want blocked by %s", d, err, made.ID)
	}
	list, err := c.Overrides(ctx, 5)
	if err != nil || len(list.Overrides) != 1 || list.Overrides[0].Reason != "r&d" || string(list.Overrides[0].Match) != string(o.Match) || len(list.Audit) != 1 || !list.Persistent {
		t.Errorf("list %+v, %v; want the one, and that it was made", list, err)
	}
	if list, err := c.Overrides(ctx, 0); err != nil || len(list.Audit) != 0 {
		t.Errorf("without an audit: %+v, %v", list.Audit, err)
	}
	if err := c.RemoveOverride(ctx, made.ID, "kim", "a?b&c"); err != nil {
		t.Errorf("remove: %v", err)
	}
	list, err = c.Overrides(ctx, 1)
	if err != nil || len(list.Overrides) != 0 || len(list.Audit) != 1 || list.Audit[0].Reason != "a?b&c" {
		t.Errorf("list %+v, %v; want none, and why", list, err)
	}
}

func TestClient_OverrideRefused(t *testing.T) {
	c, ctx := administrator(t), context.Background()
	_, err := c.PutOverrideJSON(ctx, json.RawMessage(`{"action": "block", "raeson": "x"}`))
	var e *client.Error
	if !errors.As(err, &e) || e.Kind != client.KindRefused || e.Status != http.StatusUnprocessableEntity || len(e.Problem.Mistakes) == 0 {
		t.Errorf("an override with mistakes: %v, want all of them", err)
	}
	for _, id := range []string{"none", "a/b", "../take", "a?b", ""} {
		if err := c.RemoveOverride(ctx, id, "kim", "r"); !errors.As(err, &e) || e.Kind != client.KindRefused {
			t.Errorf("removing %q: %v, want a refusal", id, err)
		}
	}
	if _, err := newServer(t).Overrides(ctx, 0); !errors.As(err, &e) || e.Status != http.StatusNotFound {
		t.Errorf("a server without overrides: %v, want 404", err)
	}
	c = newClient(t, say(200, "application/json", `{"ok":true}`))
	if _, err := c.Overrides(ctx, 0); !errors.As(err, &e) || e.Kind != client.KindInvalidResponse {
		t.Errorf("another server: %v, want that it is garbled", err)
	}
	if _, err := c.PutOverrideJSON(ctx, json.RawMessage(`{}`)); !errors.As(err, &e) || e.Kind != client.KindInvalidResponse || !strings.Contains(err.Error(), "put override") {
		t.Errorf("another server: %v, want that it is garbled", err)
	}
}
