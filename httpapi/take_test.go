// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/store"
)

const k1 = `{"attributes":{"header:x-api-key":"k1"}}`

func TestTake_Answers(t *testing.T) {
	api, c := newAPI(t, perKey, httpapi.Config{})
	const all = `{"rule":"all","limit":"all","remaining":`
	wantAnswer(t, api, "/v1/take", k1, 200, `{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[`+
		`{"rule":"free","limit":"free","remaining":1,"retry_after":0,"full_after":0.1},`+all+`999,"retry_after":0,"full_after":0.001}]}`)
	c.advance(33_333 * time.Microsecond)
	wantAnswer(t, api, "/v1/take", k1, 200, `{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[`+
		`{"rule":"free","limit":"free","remaining":0,"retry_after":0,"full_after":0.166667},`+all+`999,"retry_after":0,"full_after":0.001}]}`)

	denied := `{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.066667,"degraded":false,"limits":[` +
		`{"rule":"free","limit":"free","remaining":0,"retry_after":0.066667,"full_after":0.166667},` + all + `999,"retry_after":0,"full_after":0.001}]}`
	wantAnswer(t, api, "/v1/take", k1, 200, denied)
	wantAnswer(t, api, "/v1/peek", k1, 200, denied) // denied as a take would be

	c.advance(66_666 * time.Microsecond)
	wantAnswer(t, api, "/v1/peek", k1, 200, `{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.000001,"degraded":false,"limits":[`+
		`{"rule":"free","limit":"free","remaining":0,"retry_after":0.000001,"full_after":0.100001},`+all+`1000,"retry_after":0,"full_after":0}]}`)
	c.advance(time.Microsecond)
	if w := post(api, "/v1/take", k1); w.Code != 200 {
		t.Errorf("take after exactly the wait: got %d %s, want 200", w.Code, w.Body)
	}
}

func TestTake_Never(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	w := post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"cost":2.001}`)
	if want := `"reason":"token_bucket_exceeded","retry_after":null,`; verdict(w) != denial || !strings.Contains(w.Body.String(), want) {
		t.Errorf("take of more than the capacity: got %d %s, want a denial with %s", w.Code, w.Body, want)
	}
	if got, ok := w.Header()["Retry-After"]; ok {
		t.Errorf("take of more than the capacity: got Retry-After %q, want none", got)
	}
}

func TestTake_RetryAfterIsRoundedUp(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"cost":2}`)
	w := post(api, "/v1/take?status=429", k1)
	if got := w.Header().Get("Retry-After"); w.Code != 429 || got != "1" {
		t.Errorf("denied for 0.1 s: got %d and Retry-After %q, want 429 and 1", w.Code, got)
	}
	if w := post(api, "/v1/take", `{"requests":[`+k1+`]}`); w.Header().Get("Retry-After") != "" {
		t.Errorf("a denial in a batch: got Retry-After %q, want none", w.Header().Get("Retry-After"))
	}
}

func TestTake_NoRuleApplies(t *testing.T) {
	api, _ := newAPI(t, `{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 10, "burst": 2}}]}`, httpapi.Config{})
	wantAnswer(t, api, "/v1/take", `{"attributes":{}}`, 200,
		`{"allowed":true,"rule":"","reason":"","retry_after":0,"degraded":false,"limits":[]}`)
}

func TestTake_Reserves(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"cost":2}`)
	w := post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"max_wait":"100ms"}`)
	if want := `{"allowed":true,"rule":"free","reason":"","retry_after":0,"wait":0.1,"degraded":false,`; w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("reservation: got %d %s, want 200 %s…", w.Code, w.Body, want)
	}
	w = post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"max_wait":"100ms"}`)
	if want := `"retry_after":0.1,"degraded"`; verdict(w) != denial || !strings.Contains(w.Body.String(), want) {
		t.Errorf("reservation beyond the longest wait: got %d %s, want a denial with %s", w.Code, w.Body, want)
	}
}

func TestTake_NamesAreNormalized(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	for i, name := range []string{"header:x-api-key", "HEADER:X-Api-Key", "Header:X-API-KEY"} {
		w := post(api, "/v1/take", `{"attributes":{"`+name+`":"k1"}}`)
		if want := []int{200, 200, denial}[i]; verdict(w) != want {
			t.Errorf("take %d of 2 as %s: got %d %s, want %d", i+1, name, w.Code, w.Body, want)
		}
	}
}

// Callers of the API receive a denial as a response; clients of a gateway are denied with 403.
func TestMissingAttribute(t *testing.T) {
	const rules = `{"rules": [{"name": "keyed", "limit_keys": ["header:x-api-key"], "on_missing": "deny",
		"algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 2}}]}`
	api, _ := newAPI(t, rules, httpapi.Config{Gateway: httpapi.Gateway{Profile: httpapi.ProfileCaddy, TrustedHops: 1}})
	for _, path := range []string{"/v1/take", "/v1/peek"} {
		wantAnswer(t, api, path, `{"attributes":{}}`, 200,
			`{"allowed":false,"rule":"keyed","reason":"missing_attribute","retry_after":null,"degraded":false,"limits":[]}`)
	}
	if w := ask(api, "GET", caddyCheap...); w.Code != 403 || w.Header().Get("Retry-After") != "" {
		t.Errorf("/v1/decision: got %d with %v, want 403 without Retry-After", w.Code, w.Header())
	}
}

func TestRefundAndReset(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	spendAll := func() {
		if w := post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"cost":2}`); w.Code != 200 {
			t.Fatalf("take of all: got %d %s", w.Code, w.Body)
		}
	}
	spendAll()
	wantAnswer(t, api, "/v1/refund", `{"attributes":{"header:x-api-key":"k1"},"cost":0.5}`, 200, "{}")
	wantAnswer(t, api, "/v1/refund", `{"attributes":{"header:x-api-key":"k1"},"cost":1.5}`, 200, "{}")
	spendAll()
	wantAnswer(t, api, "/v1/reset", k1, 200, "{}")
	spendAll()
	wantAnswer(t, api, "/v1/reset", `{"requests":[`+k1+`,{"attributes":{}}]}`, 200, `{"responses":[{},{}]}`)
	spendAll()
}

func TestBatch(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	w := post(api, "/v1/take", `{"requests":[`+k1+`,`+k1+`,`+k1+`]}`)
	var got []bool
	for _, part := range strings.Split(w.Body.String(), `{"allowed":`)[1:] {
		got = append(got, strings.HasPrefix(part, "true"))
	}
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"responses":[{"allowed":true,`) || len(got) != 3 || !got[1] || got[2] {
		t.Errorf("batch of 3 where 2 fit: got %d %s, want 200 with two allowed and one denied", w.Code, w.Body)
	}
	longest := `{"requests":[` + strings.Repeat(k1+`,`, httpapi.MaxBatch-1) + k1
	if w := post(api, "/v1/peek", longest+`]}`); w.Code != 200 || strings.Count(w.Body.String(), `"allowed"`) != httpapi.MaxBatch {
		t.Errorf("batch of %d: got %d %s, want 200 with as many answers", httpapi.MaxBatch, w.Code, w.Body)
	}
	w = post(api, "/v1/peek", longest+`,`+k1+`]}`)
	if want := `"pointer":"/requests/100"`; w.Code != 400 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("batch of one more: got %d %s, want 400 with %s", w.Code, w.Body, want)
	}
}

func TestBatch_OneWrongServesNone(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	if w := post(api, "/v1/take", `{"requests":[`+k1+`,{"attributes":{},"cost":-1}]}`); w.Code != 400 {
		t.Fatalf("batch with a negative cost: got %d %s, want 400", w.Code, w.Body)
	}
	if w := post(api, "/v1/take", `{"attributes":{"header:x-api-key":"k1"},"cost":2}`); w.Code != 200 {
		t.Errorf("take of all after a refused batch: got %d %s, want 200", w.Code, w.Body)
	}
}

func TestStoreFails(t *testing.T) {
	rules := func(then string) string {
		return `{"rules": [{"name": "free", "limit_keys": [], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 10, "burst": 2}, "on_store_error": "` + then + `"}]}`
	}
	open := apiOver(t, brokenStore{}, rules("open"), httpapi.Config{})
	closed := apiOver(t, brokenStore{}, rules("closed"), httpapi.Config{})
	wantAnswer(t, open, "/v1/take", `{"attributes":{}}`, 200,
		`{"allowed":true,"rule":"","reason":"","retry_after":0,"degraded":true,"failure":"error","limits":[]}`)
	wantAnswer(t, closed, "/v1/take", `{"attributes":{}}`, 200,
		`{"allowed":false,"rule":"free","reason":"store_error","retry_after":1,"degraded":true,"failure":"error","limits":[]}`)

	local := apiOver(t, brokenStore{}, rules("local"), httpapi.Config{})
	wantAnswer(t, local, "/v1/take", `{"attributes":{},"cost":2}`, 200,
		`{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":true,"failure":"error","limits":[`+
			`{"rule":"free","limit":"free","remaining":0,"retry_after":0,"full_after":0.2}]}`)
	wantAnswer(t, local, "/v1/take", `{"attributes":{}}`, 200,
		`{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.1,"degraded":true,"failure":"error","limits":[`+
			`{"rule":"free","limit":"free","remaining":0,"retry_after":0.1,"full_after":0.2}]}`)

	for _, tt := range []struct {
		spent store.Spending
		want  string
	}{
		{mete.NotSpent, "nothing was changed"},
		{mete.MaybeSpent, "may or may not have changed"},
	} {
		api := apiOver(t, brokenStore{tt.spent}, rules("open"), httpapi.Config{Admin: true})
		for _, path := range []string{"/v1/refund", "/v1/reset"} {
			w := post(api, path, `{"attributes":{}}`)
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Content-Type") != "application/problem+json" ||
				!strings.Contains(w.Body.String(), tt.want) || strings.Contains(w.Body.String(), "192.0.2.7") {
				t.Errorf("%s with a broken store: got %d %s, want 503 with %q and no address", path, w.Code, w.Body, tt.want)
			}
		}
	}
}

// The caller chooses between a denial with status 200 and one with the status and
// Retry-After. Both have the same body.
func TestTake_Status(t *testing.T) {
	const two = `{"attributes":{"header:x-api-key":"k1"},"cost":2}`
	for path, wait := range map[string]string{"/v1/take": `"retry_after":0.1,`, "/v1/peek": `"retry_after":0.2,`} {
		h, _ := newAPI(t, perKey, httpapi.Config{})
		if w := post(h, path+"?status=429", k1); w.Code != 200 || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s, allowed: got %d with %v, want 200", path, w.Code, w.Header())
		}
		post(h, "/v1/take", two)
		post(h, "/v1/take", two)
		plain, asked := post(h, path, two), post(h, path+"?status=429", two)
		if verdict(plain) != denial || plain.Header().Get("X-Ratelimit-Reason") != "" {
			t.Errorf("%s: got %d with %v, want 200 and no field about the denial", path, plain.Code, plain.Header())
		}
		if asked.Code != 429 || asked.Header().Get("Retry-After") == "" || asked.Header().Get("X-Ratelimit-Reason") == "" {
			t.Errorf("%s?status=429: got %d with %v, want 429 with Retry-After and the reason", path, asked.Code, asked.Header())
		}
		if plain.Body.String() != asked.Body.String() || !strings.Contains(plain.Body.String(), wait) {
			t.Errorf("%s: got %s and %s, want the same with the exact wait", path, plain.Body, asked.Body)
		}
	}
	closed := apiOver(t, brokenStore{}, `{"rules": [{"name": "free", "limit_keys": [], "on_store_error": "closed", "algorithm_config": {"rps": 10, "burst": 2}}]}`, httpapi.Config{})
	if w := post(closed, "/v1/take?status=429", `{"attributes":{}}`); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("without the store: got %d with %v, want 503 and Retry-After 1", w.Code, w.Header())
	}
}

func TestTake_BadStatus(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/take?status=200", k1, `status is \"200\"; use status=429`},
		{"/v1/take?status=", k1, `status is \"\"; use status=429`},
		{"/v1/peek?status=true", k1, `status is \"true\"`},
		{"/v1/take?status=0429", k1, `status is \"0429\"`},
		{"/v1/take?status=" + strings.Repeat("9", 5000), k1, "use status=429"},
		{"/v1/take?status=429&status=429", k1, `duplicate parameter \"status\"`},
		{"/v1/take?Status=429", k1, `unknown parameter \"Status\"`},
		{"/v1/take?stauts=429", k1, `unknown parameter \"stauts\"`},
		{"/v1/take?status=%zz", k1, "the query of the URL cannot be parsed"},
		{"/v1/take?status=429", `{"requests":[` + k1 + `]}`, "a batch has no single status"},
		{"/v1/refund?status=429", k1, `unknown parameter \"status\"`},
		{"/v1/reset?status=429", k1, `unknown parameter \"status\"`},
	} {
		w := post(h, tt.path, tt.body)
		if w.Code != 400 || !strings.Contains(w.Body.String(), tt.want) || w.Body.Len() > 1000 {
			t.Errorf("%.60s: got %d %.300s, want 400 with %s", tt.path, w.Code, w.Body, tt.want)
		}
	}
	if w := post(h, "/v1/peek", `{"attributes":{"header:x-api-key":"k1"},"cost":2}`); verdict(w) != 200 {
		t.Errorf("after these: got %d %s, want all tokens there", w.Code, w.Body)
	}
}
