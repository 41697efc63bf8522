// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

func TestFacts_Client(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Header = "192.0.2.1:80", http.Header{"X-Api-Key": {"k1"}}
	facts := newSource(t, httpfacts.Config{}).Facts(r)
	defer facts.Release()
	keyed := &policy.Rule{LimitKeys: []policy.Attribute{attribute(t, "header:x-api-key"), attribute(t, "query:tenant")}}
	for _, tt := range []struct {
		decision mete.Decision
		want     []string
	}{
		{mete.Decision{}, []string{"192.0.2.1"}},
		{mete.Decision{Limits: []mete.Status{{Rule: &policy.Rule{}}}}, []string{"192.0.2.1"}},
		{mete.Decision{Limits: []mete.Status{{Rule: keyed}}}, []string{"192.0.2.1", "k1", ""}},
	} {
		if got := facts.Client(&tt.decision); !slices.Equal(got, tt.want) {
			t.Errorf("Client(%+v): got %q, want %q", tt.decision, got, tt.want)
		}
	}
}
