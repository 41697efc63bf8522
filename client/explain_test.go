// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
)

func TestClient_Explain(t *testing.T) {
	c := newServer(t)
	for _, want := range []string{
		"allowed: 0 of 2 tokens left by rule free", "denied by rule free: 0 of 2 tokens left, and it costs 2",
	} {
		for range 2 { // nothing is spent
			e, err := c.Explain(t.Context(), request(2*bucket.Token))
			if err != nil || e.Why != want || len(e.Rules) != 1 || e.Rules[0].Limits[0].Cost.String() != "2" || e.PassesAt == nil {
				t.Errorf("%+v, error %v; want %s", e, err, want)
			}
		}
		if _, err := c.Take(t.Context(), request(2*bucket.Token)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClient_ExplainRefused(t *testing.T) {
	_, err := serverOf(t, httpapi.Config{}).Explain(t.Context(), request(0))
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Kind != client.KindRefused || e.Status != http.StatusNotFound {
		t.Errorf("where it is not for administrators: error %v", err)
	}
	other := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"allowed":true}`))
	}))
	_, err = other.Explain(t.Context(), request(0))
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Kind != client.KindInvalidResponse {
		t.Errorf("another answer: error %v", err)
	}
}
