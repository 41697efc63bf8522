// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func TestClient_AI(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["ip:address"], "rate": "100/1m", "cost_source": "ai:tokens"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ratios, err := ai.NewRatios(10)
	if err != nil {
		t.Fatal(err)
	}
	counts := aiusage.New(ratios)
	counts.SetPolicy(m)
	counts.OnModelCall(t.Context(), &policy.ModelCall{Model: "m", Reported: true, Usage: &policy.TokenUsage{Input: 3, Output: 2}})
	h, err := httpapi.New(lim, httpapi.Config{Admin: true, Live: httpapi.Live{AI: counts}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := newClient(t, h).AI(t.Context())
	if err != nil || !got.Policy.Tokens || len(got.Models) != 1 || got.Models[0].Input != 3 || got.Models[0].Output != 2 {
		t.Errorf("got %+v, %v", got, err)
	}

	empty := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	var problem *client.Error
	if _, err := empty.AI(t.Context()); !errors.As(err, &problem) || problem.Kind != client.KindInvalidResponse {
		t.Errorf("an empty answer: %v", err)
	}
}
