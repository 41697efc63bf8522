// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// serveHolds returns a client of a server with a rule of 100 tokens, and a rule of one slot beside another.
func serveHolds(t *testing.T, config httpapi.Config) *client.Client {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "tokens", "match": {"path": "/v1/chat"}, "limit_keys": [], "algorithm_config": {"rate": "1/1000h", "burst": 100, "max_reserved": 50}},
		{"name": "budget", "match": {"path": "/stream"}, "limit_keys": [], "algorithm_config": {"rate": "1/1000h", "burst": 100}},
		{"name": "jobs", "group": "jobs", "match": {"path": "/stream"}, "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "10m"},
		{"name": "hot", "match": {"path": "/hot"}, "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "shards": 2}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, m, config)
}

func serve(t *testing.T, m *policy.Matcher, config httpapi.Config) *client.Client {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(l, config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var chat = client.Request{Attributes: map[string]string{"path": "/v1/chat"}, Cost: 40}

func TestHold(t *testing.T) {
	c := serveHolds(t, httpapi.Config{})
	left := func(want int64) {
		t.Helper()
		d, err := c.Peek(t.Context(), chat)
		if err != nil || d.Limits[0].Remaining != want {
			t.Errorf("%+v, error %v; want %d left", d, err, want)
		}
	}
	req := chat
	req.ID = "stream 1"
	h, err := c.Hold(t.Context(), req, client.HoldOptions{TTL: 5 * time.Minute, Refund: true})
	if err != nil || !h.Allowed || h.Hold == "" || h.Expires == nil || len(h.Limits) != 1 {
		t.Fatalf("%+v, error %v; want a hold", h, err)
	}
	left(60)
	again, err := c.Hold(t.Context(), req, client.HoldOptions{TTL: 5 * time.Minute})
	if err != nil || again.Hold != h.Hold || !again.Expires.Equal(*h.Expires) {
		t.Errorf("%+v, error %v; want the same hold", again, err)
	}
	left(60)
	if s, err := c.Renew(t.Context(), h.Hold, time.Hour); err != nil || s.State != "open" || s.Settled || !s.Expires.After(*h.Expires) {
		t.Errorf("%+v, error %v; want open for longer", s, err)
	}
	if _, err := c.Settle(t.Context(), h.Hold, 200); refusal(err) != http.StatusConflict {
		t.Errorf("error %v, want 409: the limit cannot owe so much", err)
	}
	left(60)
	for i := range 3 {
		s, err := c.Settle(t.Context(), h.Hold, 12.5)
		if err != nil || s.State != "settled" || s.Settled != (i == 0) || s.Cost.String() != "12.5" {
			t.Errorf("%+v, error %v; want settled with 12.5", s, err)
		}
	}
	left(87)
	if s, err := c.Release(t.Context(), h.Hold); err != nil || s.Settled {
		t.Errorf("%+v, error %v; want no effect", s, err)
	}
	h, err = c.Hold(t.Context(), chat, client.HoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Settle(t.Context(), h.Hold, 0); err != nil || !s.Settled || s.Cost.String() != "0" {
		t.Errorf("%+v, error %v; want settled with 0", s, err)
	}
	left(87)
	big := chat
	big.Cost = 101
	if h, err := c.Hold(t.Context(), big, client.HoldOptions{}); err != nil || h.Allowed || h.Hold != "" || h.Expires != nil {
		t.Errorf("%+v, error %v; want a denial", h, err)
	}
	none, err := c.Hold(t.Context(), client.Request{}, client.HoldOptions{})
	if err != nil || !none.Allowed || none.Expires != nil {
		t.Errorf("%+v, error %v; want a request without a hold", none, err)
	}
	if s, err := c.Settle(t.Context(), none.Hold, 3); err != nil || s.Settled || s.Cost != nil || s.Expires != nil {
		t.Errorf("%+v, error %v; want no effect", s, err)
	}
}

// A hold and its slot end by calls of their own.
func TestHold_Slot(t *testing.T) {
	c := serveHolds(t, httpapi.Config{})
	stream := client.Request{Attributes: map[string]string{"path": "/stream"}, Cost: 40}
	h, err := c.Hold(t.Context(), stream, client.HoldOptions{})
	if err != nil || h.Hold == "" || h.Slot == "" || h.Lease != api.Seconds(10*time.Minute) || len(h.Limits) != 2 {
		t.Fatalf("%+v, error %v; want a hold with a slot", h, err)
	}
	if s, err := c.Settle(t.Context(), h.Hold, 12); err != nil || !s.Settled {
		t.Errorf("%+v, error %v; want settled", s, err)
	}
	if d, err := c.Hold(t.Context(), stream, client.HoldOptions{}); err != nil || d.Allowed || d.Rule != "jobs" || d.Hold != "" || d.Slot != "" {
		t.Errorf("%+v, error %v; want a denial without a free slot", d, err)
	}
	held := stream
	held.Slot = h.Slot
	if again, err := c.RenewSlots(t.Context(), held); err != nil || !again.Held {
		t.Errorf("%+v, error %v; want the slot of the settled hold renewed", again, err)
	}
	if err := c.ReleaseSlots(t.Context(), held); err != nil {
		t.Error(err)
	}
	if d, err := c.Hold(t.Context(), stream, client.HoldOptions{}); err != nil || !d.Allowed || d.Limits[0].Remaining != 48 {
		t.Errorf("%+v, error %v; want 48 tokens left beside a settlement of 12 and the new hold", d, err)
	}
}

// refusal returns the status of a refused request, or 0.
func refusal(err error) int {
	var e *client.Error
	if errors.As(err, &e) && e.Kind == client.KindRefused && e.Spent() == store.NotSpent {
		return e.Status
	}
	return 0
}

func TestHold_Errors(t *testing.T) {
	c := serveHolds(t, httpapi.Config{})
	for what, try := range map[string]struct {
		status int
		call   func(context.Context) error
	}{
		"unknown":       {404, func(ctx context.Context) error { _, err := c.Settle(ctx, "x", 1); return err }},
		"unknown renew": {404, func(ctx context.Context) error { _, err := c.Renew(ctx, "x", time.Second); return err }},
		"empty":         {400, func(ctx context.Context) error { _, err := c.Release(ctx, ""); return err }},
		"long":          {400, func(ctx context.Context) error { _, err := c.Renew(ctx, "x", 1000*time.Hour); return err }},
		"short":         {400, func(ctx context.Context) error { _, err := c.Renew(ctx, "x", 0); return err }},
		"long ttl": {400, func(ctx context.Context) error {
			_, err := c.Hold(ctx, chat, client.HoldOptions{TTL: 1000 * time.Hour})
			return err
		}},
		"negative ttl":  {0, func(ctx context.Context) error { _, err := c.Hold(ctx, chat, client.HoldOptions{TTL: -1}); return err }},
		"negative cost": {0, func(ctx context.Context) error { _, err := c.Settle(ctx, "x", -1); return err }},
		"sharded limit": {409, func(ctx context.Context) error {
			_, err := c.Hold(ctx, client.Request{Attributes: map[string]string{"path": "/hot"}}, client.HoldOptions{})
			return err
		}},
	} {
		err := try.call(t.Context())
		if err == nil || refusal(err) != try.status {
			t.Errorf("%s: error %v, want status %d", what, err, try.status)
		}
		if what == "sharded limit" && !strings.Contains(err.Error(), `rule "hot"`) {
			t.Errorf("error %v does not name the rule", err)
		}
	}
	reader := serveHolds(t, httpapi.Config{Role: func(*http.Request) httpapi.Role { return httpapi.RoleRead }})
	if _, err := reader.Hold(t.Context(), chat, client.HoldOptions{}); refusal(err) != http.StatusUnauthorized {
		t.Errorf("error %v, want 401 without the role operate", err)
	}
}

// A usage settles limits of tokens and of money, which one cost cannot.
func TestSettleUsage(t *testing.T) {
	m, err := policy.Load([]byte(`{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 4000}, "big": {"input": 100000, "output": 100000}}}, "rules": [
		{"name": "tokens", "group": "t", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:tokens"},
		{"name": "money", "group": "m", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:money"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, m, httpapi.Config{})
	req := client.Request{Attributes: map[string]string{"ai:model": "small", "ai:prompt_tokens": "500", "ai:max_tokens": "1000"}}
	usage := client.TokenUsage{Input: 400, Output: 90, Reasoning: 10}
	for i, tt := range []struct {
		model         string
		tokens, money int64
	}{{"", 4500, 4999}, {"big", 4000, 4949}} {
		h, err := c.Hold(t.Context(), req, client.HoldOptions{})
		if err != nil || !h.Allowed {
			t.Fatalf("%+v, error %v; want a hold", h, err)
		}
		if _, err := c.Settle(t.Context(), h.Hold, 500); refusal(err) != http.StatusConflict || !strings.Contains(err.Error(), "settle it by the usage") {
			t.Errorf("one cost: error %v, want 409 with the remedy", err)
		}
		for _, bad := range []client.TokenUsage{{Input: -1}, {Output: 1_000_000_001}} {
			if _, err := c.SettleUsage(t.Context(), h.Hold, bad, ""); refusal(err) != http.StatusBadRequest {
				t.Errorf("usage %+v: error %v, want 400", bad, err)
			}
		}
		for first := range 2 {
			s, err := c.SettleUsage(t.Context(), h.Hold, usage, tt.model)
			if err != nil || s.State != "settled" || s.Settled != (first == 0) || s.Cost != nil || s.Expires == nil {
				t.Errorf("%+v, error %v; want settled without a cost", s, err)
			}
		}
		d, err := c.Peek(t.Context(), client.Request{Attributes: map[string]string{"ai:model": "small", "ai:prompt_tokens": "1", "ai:max_tokens": "1"}})
		if err != nil || d.Limits[0].Remaining != tt.tokens || d.Limits[1].Remaining != tt.money {
			t.Errorf("settlement %d: %+v, error %v; want %d and %d left", i, d, err, tt.tokens, tt.money)
		}
	}
	plain := serveHolds(t, httpapi.Config{})
	h, err := plain.Hold(t.Context(), chat, client.HoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.SettleUsage(t.Context(), h.Hold, usage, ""); refusal(err) != http.StatusConflict || !strings.Contains(err.Error(), "settle it with a cost") {
		t.Errorf("the usage of a hold with a cost: error %v, want 409 with the remedy", err)
	}
}
