// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/requesttext"
)

const readers = `{"rules": [
	{"name": "paid", "limit_keys": ["header:x-api-key"], "match": {"jwt:plan": "pro"}, "algorithm_config": {"rps": 100, "burst": 200}},
	{"name": "bots", "limit_keys": ["ip:address"], "match": {"header:user-agent": "curl/*", "query:q": "*"}, "algorithm_config": {"rps": 1, "burst": 2}}]}`

// readCurl returns the request of curlLine.
func readCurl(line string) (httpapi.CurlRequest, error) {
	if line != curlLine {
		return httpapi.CurlRequest{}, requesttext.ErrorAt(line, 7, "curl option --nothing is not read", "remove it")
	}
	return httpapi.CurlRequest{
		Request: &http.Request{Method: "GET", RequestURI: "/x?q=1&r=2", Host: "API.example.com", Header: http.Header{
			"X-Api-Key": {"k1"}, "X-Other": {"1"}, "User-Agent": {"curl/8.0.0"}, "Accept": {"*/*"},
		}},
		Assumed: []string{"User-Agent", "Accept"}, Notes: []string{"ignored: --max-time 5"},
	}, nil
}

const curlLine = `curl -m 5 'https://API.example.com/x?q=1&r=2' -H 'X-Api-Key: k1' -H 'X-Other: 1'`

func TestRequest(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, readers), Live: httpapi.Live{ReadCurl: readCurl}})
	const token = "e30.eyJzdWIiOiJ1MSIsInBsYW4iOiJwcm8ifQ.x" // of sub u1 and plan pro
	for _, tt := range []struct {
		name, text, want string
		notes            []string
	}{
		{"a command", curlLine,
			`{"attributes":{"header:user-agent":"curl/8.0.0","header:x-api-key":"k1","host":"api.example.com","method":"GET","path":"/x","query:q":"1"},` +
				`"secrets":["header:x-api-key"],"unread":["header:accept","header:x-other","query:r"],"notes":`,
			[]string{"ignored: --max-time 5", `the host "API.example.com" is matched as "api.example.com"`,
				`the command does not set header:user-agent: curl sends its own, such as "curl/8.0.0"`,
				"rules read the client's address, which the text of a request does not contain: set ip:address"}},
		{"a token", "GET / HTTP/1.1\nHost: h\nAuthorization: Bearer " + token,
			`{"attributes":{"host":"h","jwt:plan":"pro","method":"GET","path":"/"},"secrets":[],"unread":["header:authorization"],"notes":`,
			[]string{requesttext.ClaimsNote, "rules read the client's address, which the text of a request does not contain: set ip:address"}},
		{"attributes", "ip=192.0.2.1\ncost=2.5\nGET /x",
			`{"attributes":{"ip:address":"192.0.2.1","method":"GET","path":"/x"},"cost":2.5,"secrets":[],"unread":[],"notes":`, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := askAs(h, "r", "POST", "/v1/request", text(map[string]string{"text": tt.text}), "Content-Type", "application/json")
			got := w.Body.String()
			if w.Code != http.StatusOK || !strings.HasPrefix(got, tt.want) {
				t.Errorf("%d\n%s\nwant %s…", w.Code, got, tt.want)
			}
			if want := text(tt.notes); !strings.HasSuffix(got, `"notes":`+strings.NewReplacer("<", `\u003c`).Replace(want)+"}\n") {
				t.Errorf("%s\nwant notes %s", got, want)
			}
		})
	}
}

func TestRequest_Errors(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, readers), Live: httpapi.Live{ReadCurl: readCurl}})
	for _, tt := range []struct {
		body, want string
		status     int
	}{
		{`{"text": "curl h --nothing"}`, `"detail":"line 1, column 8: curl option --nothing is not read; remove it`, http.StatusBadRequest},
		{`{"text": ""}`, `"pointer":"/text"`, http.StatusBadRequest},
		{`{"text": "` + strings.Repeat("x", requesttext.MaxBytes+1) + `"}`, `longer than 65536 bytes`, http.StatusBadRequest},
		{`{"other": 1}`, `the body cannot be parsed`, http.StatusBadRequest},
	} {
		w := askAs(h, "r", "POST", "/v1/request", tt.body, "Content-Type", "application/json")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%.60s: %d %s, want %d and %s", tt.body, w.Code, w.Body, tt.status, tt.want)
		}
	}
	for _, token := range []string{"", "x"} {
		if w := askAs(h, token, "POST", "/v1/request", `{"text": "/x"}`); w.Code != http.StatusUnauthorized {
			t.Errorf("token %q: %d", token, w.Code)
		}
	}
	if w := askAs(h, "r", "GET", "/v1/request", ""); w.Code != http.StatusMethodNotAllowed || !slices.Equal(w.Header()["Allow"], []string{"POST"}) {
		t.Errorf("GET: %d, Allow %q", w.Code, w.Header()["Allow"])
	}
}

// Without a reader of curl commands, the answer names what to paste in place of one.
func TestRequest_CurlNotOffered(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, readers)})
	w := askAs(h, "r", "POST", "/v1/request", text(map[string]string{"text": curlLine}), "Content-Type", "application/json")
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "curl commands are not supported here; paste the text of the HTTP request") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
