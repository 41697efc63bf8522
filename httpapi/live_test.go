// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
)

// A page learns the caller's role and how to get a token. Its data requires the role read, and a page of the same
// origin.
func TestMe(t *testing.T) {
	name := func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }
	h := newLive(t, liveConfig{Live: httpapi.Live{SignIn: "ask Kim", Name: name}})
	w := askAs(h, "", "GET", "/v1/me", "")
	if w.Code != 401 || w.Header().Get("Www-Authenticate") == "" || !strings.Contains(w.Body.String(), "role read is required; send it as Authorization: Bearer TOKEN. ask Kim") {
		t.Errorf("status %d for nobody, %v: %s", w.Code, w.Header(), w.Body)
	}
	w = askAs(h, "r", "GET", "/v1/me", "")
	actions, _ := json.Marshal(policy.Actions())
	algorithms, _ := json.Marshal(policy.Algorithms())
	want := `{"name":"r","role":"read","see_keys":false,"sign_in":"ask Kim","version":"","started":"0001-01-01T00:00:00Z","instance":"one",` +
		`"features":{"top":false,"overrides":false,"violations":false,"ai":false},"actions":` + string(actions) +
		`,"algorithms":` + string(algorithms) + `,"reasons":["token_bucket_exceeded","fixed_window_exceeded","sliding_window_exceeded",` +
		`"sliding_log_exceeded","leaky_bucket_exceeded","budget_exceeded","tpm_exceeded","concurrency_exceeded","tpd_exceeded","prompt_tokens_exceeded",` +
		`"max_tokens_per_request_exceeded","loop_detected","circuit_breaker_open","missing_attribute","blocked"]}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := askAs(h, "op", "GET", "/v1/me", ""); !strings.Contains(w.Body.String(), `"see_keys":true`) {
		t.Errorf("an operator gets %s", w.Body)
	}
	if w := askAs(h, "r", "DELETE", "/v1/me", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("status %d of DELETE, want 405", w.Code)
	}
	for _, path := range []string{"/v1/play", "/v1/request"} {
		if w := askAs(h, "r", "POST", path, "{}", "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
			t.Errorf("%s: status %d for a page of another origin, want 403", path, w.Code)
		}
	}
}

// Without a monitor there is no traffic, and without Admin nothing of all this.
func TestLive_Absent(t *testing.T) {
	for path, admin := range map[string]int{"/v1/me": 200, "/v1/rules": 200, "/v1/traffic": 404, "/v1/traffic/stream": 404, "/v1/violations": 404} {
		for _, is := range []bool{true, false} {
			h, err := httpapi.New(newLimiter(t, rules), httpapi.Config{Admin: is})
			if err != nil {
				t.Fatal(err)
			}
			want := 404
			if is {
				want = admin
			}
			if w := askAs(h, "", "GET", path, ""); w.Code != want {
				t.Errorf("%s with Admin %v: %d %s, want %d", path, is, w.Code, w.Body, want)
			}
			h.Close()
		}
	}
}
