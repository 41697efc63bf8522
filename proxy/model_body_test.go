// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/proxy"
)

// parsedBytes is the beginning of a body that rules read.
const parsedBytes = 1 << 20

// longBodyRules have one rule, with a mode.
const longBodyRules = `{"rules": [{"name": "chat", "mode": "%s", "limit_keys": [], "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 10000000}]}`

// TestModelBody_LateMembers checks that an upstream never gets the whole of a long body that means another request than the one
// that was charged.
func TestModelBody_LateMembers(t *testing.T) {
	messages := `"messages":[{"content":"` + strings.Repeat("x", 3*parsedBytes) + `"}]`
	for _, tt := range []struct {
		body   string
		status int
		detail string
	}{
		{`{"model":"cheap",` + messages + `,"temperature":1,"stream":false}`, 200, ""},
		{`{"model":"cheap",` + messages + `,"model":"expensive"}`, 400, "model occurs twice: remove one of them."},
		{`{"model":"cheap",` + messages + `,"Model":"expensive"}`, 400, `some servers read the member \"Model\" as model`},
		{`{"model":"cheap",` + messages + `,"max_tokens":100000}`, 400, "the maximum of tokens is behind the first 1048576 bytes of the body: write it before the messages."},
		{`{"model":"cheap",` + messages + `}{"model":"expensive"}`, 400, "it is invalid at byte"},
	} {
		for _, h2c := range []bool{false, true} {
			whole := make(chan bool, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				whole <- err == nil && string(body) == tt.body
				if strings.Contains(string(body), "expensive") || strings.Contains(string(body), "100000") {
					t.Errorf("the upstream got the end of the body of %d bytes", len(body))
				}
			})
			mw, settled := newModelMiddleware(t, fmt.Sprintf(longBodyRules, "enforce"))
			target := "h2c://" + serveH2C(t, handler)
			if !h2c {
				target = serve(t, handler)
			}
			var errs counter
			front := serveProxy(t, target, mw, proxy.Config{OnError: errs.onError})
			res, err := http.Post(front+"/v1/chat/completions", "application/json", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != tt.status || !strings.Contains(string(answer), tt.detail) {
				t.Errorf("%.60s…%s, HTTP/2 %v: %d %s", tt.body, tt.body[len(tt.body)-40:], h2c, res.StatusCode, answer)
			}
			if got := receive(t, whole, "request"); got != (tt.status == 200) {
				t.Errorf("…%s, HTTP/2 %v: the upstream got the whole body: %v", tt.body[len(tt.body)-40:], h2c, got)
			}
			s := receive(t, settled, "settlement")
			if free := s.Charged == 0; free != (tt.status == 400) || s.Reserved < parsedBytes/4*bucket.Token {
				t.Errorf("…%s: charged %v of %v", tt.body[len(tt.body)-40:], s.Charged, s.Reserved)
			}
			if n := errs.n.Load(); n != 0 {
				t.Errorf("…%s: %d errors of the upstream", tt.body[len(tt.body)-40:], n)
			}
		}
	}
}

// TestModelBody_Shadow checks that a rule in shadow rejects no body.
func TestModelBody_Shadow(t *testing.T) {
	mw, _ := newModelMiddleware(t, fmt.Sprintf(longBodyRules, "shadow"))
	front := serveProxy(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), mw, proxy.Config{})
	body := `{"model":"m","x":"` + strings.Repeat("x", 2*parsedBytes) + `","model":"n"`
	res, err := http.Post(front+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
}
