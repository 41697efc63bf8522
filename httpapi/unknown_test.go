// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// readsMuch reads attributes in every possible way: in a key, a match, a match of an override, and as the source
// of a cost.
const readsMuch = `{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "match": {"jwt:plan": {"not": "paid"}}, "algorithm": "token_bucket",
	"algorithm_config": {"rps": 10, "burst": 20, "cost_source": "header:x-cost", "default_cost": 1}}],
	"overrides": [{"id": "o", "action": "allow", "match": {"ip:address": "192.0.2.9"}, "reason": "r", "author": "a", "expires_at": "2098-01-01T00:00:00Z"}]}`

func unknownOf(t *testing.T, w *httptest.ResponseRecorder) []string {
	t.Helper()
	var d api.Decision
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return d.UnknownAttributes
}

// An attribute that nothing reads is reported: its name may be mistyped, and the request
// then falls under no limit.
func TestUnknownAttributes(t *testing.T) {
	h, _ := newAPI(t, readsMuch, httpapi.Config{AlsoRead: []policy.Attribute{attribute(t, "jwt:sub")}})
	for _, tt := range []struct {
		attributes string
		want       []string
	}{
		{`"header:x_api_key":"k1"`, []string{"header:x_api_key"}},
		{`"header:x-api-key":"k1","nonsense":"1","path":"/"`, []string{"nonsense", "path"}},
		{`"header:X-Api-Key":"k1","jwt:plan":"free","header:x-cost":"1","ip:address":"192.0.2.1","jwt:sub":"kim"`, nil},
		{`"ip:address/56":"192.0.2.1"`, nil},
		{`"header:x_api_key":null`, nil}, // the request does not have it
		{``, nil},
	} {
		for _, path := range []string{"/v1/take", "/v1/peek"} {
			w := post(h, path, `{"attributes":{`+tt.attributes+`}}`)
			if got := unknownOf(t, w); !slices.Equal(got, tt.want) {
				t.Errorf("%s of {%s}: unknown attributes are %q, want %q", path, tt.attributes, got, tt.want)
			}
			if tt.want == nil && strings.Contains(w.Body.String(), "unknown") {
				t.Errorf("%s of {%s}: got %s, want no mention of unknown attributes", path, tt.attributes, w.Body)
			}
		}
	}
	w := post(h, "/v1/take", `{"requests":[{"attributes":{"a":"1"}},{"attributes":{"header:x-api-key":"k1"}}]}`)
	if got := w.Body.String(); strings.Count(got, "unknown_attributes") != 1 || !strings.Contains(got, `"unknown_attributes":["a"]},{`) {
		t.Errorf("a batch: got %s, want unknown attributes in the first answer alone", got)
	}
}

// The attributes of an override are known while it is active.
func TestUnknownAttributes_FollowThePolicy(t *testing.T) {
	clock := newClock()
	store, err := memstore.New(memstore.Config{Now: clock.read})
	if err != nil {
		t.Fatal(err)
	}
	lim := limiter(t, store, perKey)
	h, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	const ask = `{"attributes":{"jwt:sub":"kim"}}`
	if got := unknownOf(t, post(h, "/v1/take", ask)); !slices.Equal(got, []string{"jwt:sub"}) {
		t.Errorf("before: unknown attributes are %q, want jwt:sub", got)
	}
	var x api.Explanation
	if w := post(h, "/v1/explain", ask); json.Unmarshal(w.Body.Bytes(), &x) != nil || !slices.Equal(x.Decision.UnknownAttributes, []string{"jwt:sub"}) {
		t.Errorf("explained: got %s, want jwt:sub as unknown", w.Body)
	}
	m, err := lim.Policy().WithOverrides([]policy.Override{{ID: "o", Action: policy.ActionBlock, Match: json.RawMessage(`{"jwt:sub":"eve"}`),
		Reason: "r", Author: "a", ExpiresAt: time.Now().Add(time.Hour)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := lim.SetPolicy(m); err != nil {
		t.Fatal(err)
	}
	if got := unknownOf(t, post(h, "/v1/take", ask)); got != nil {
		t.Errorf("with an override about it: unknown attributes are %q, want none", got)
	}
}

func TestUnknownAttributes_AreBounded(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{})
	for _, n := range []int{3, 15, 17, 500} {
		var list, want []string
		for i := range n {
			name := fmt.Sprintf("a%03d", i)
			list, want = append(list, `"`+name+`":"1"`), append(want, name)
		}
		list = append(list, `"header:x-api-key":"k1"`)
		got := unknownOf(t, post(h, "/v1/peek", `{"attributes":{`+strings.Join(list, ",")+`}}`))
		if want = want[:min(n, httpapi.MaxUnknown)]; !slices.Equal(got, want) {
			t.Errorf("of %d: got %q, want %q", n, got, want)
		}
	}
}
