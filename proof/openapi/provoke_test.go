// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/meted"
)

// plain is a request for each operation that nothing is wrong with.
var plain = map[string]question{
	"POST /v1/take":          {target: "/v1/take", body: `{"attributes":{}}`},
	"POST /v1/peek":          {target: "/v1/peek", body: `{"attributes":{}}`},
	"POST /v1/hold":          {target: "/v1/hold", body: `{"attributes":{}}`},
	"POST /v1/settle":        {target: "/v1/settle", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA","cost":1}`},
	"POST /v1/release":       {target: "/v1/release", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`},
	"POST /v1/renew":         {target: "/v1/renew", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA","for":"1m"}`},
	"POST /v1/slots/renew":   {target: "/v1/slots/renew", body: slotRequest},
	"POST /v1/slots/release": {target: "/v1/slots/release", body: slotRequest},
	"POST /v1/refund":        {target: "/v1/refund", body: `{"attributes":{}}`},
	"POST /v1/reset":         {target: "/v1/reset", body: `{"attributes":{}}`},
	"POST /v1/explain":       {target: "/v1/explain", body: `{"attributes":{}}`},
	"POST /v1/reload":        {target: "/v1/reload"},
	"GET /v1/top":            {target: "/v1/top"},
	"GET /v1/bucket":         {target: "/v1/bucket?key=queue:x-queue=p"},
	"POST /v1/bucket/reset":  {target: "/v1/bucket/reset", body: `{"key":"queue:x-queue=p","reason":"r"}`},
	"POST /v1/bucket/take":   {target: "/v1/bucket/take", body: `{"key":"queue:x-queue=p","tokens":1}`},
	"POST /v1/rules/reset":   {target: "/v1/rules/reset", body: `{"rule":"queue","reason":"r"}`},
	"GET /v1/activity":       {target: "/v1/activity"},
	"GET /v1/me":             {target: "/v1/me"},
	"GET /v1/rules":          {target: "/v1/rules"},
	"POST /v1/request":       {target: "/v1/request", body: `{"text":"GET /x"}`},
	"GET /v1/ai":             {target: "/v1/ai"},
	"GET /v1/traffic":        {target: "/v1/traffic"},
	"GET /v1/traffic/stream": {target: "/v1/traffic/stream"},
	"GET /v1/watch":          {target: "/v1/watch?key=queue:x-queue=p"},
	"POST /v1/play":          {target: "/v1/play", body: played},
	"GET /v1/play/presets":   {target: "/v1/play/presets"},
	"GET /v1/violations":     {target: "/v1/violations"},
	"GET /v1/violations.csv": {target: "/v1/violations.csv"},

	"GET /v1/violations/histogram": {target: "/v1/violations/histogram"},
	"GET /v1/overrides":            {target: "/v1/overrides"},
	"PUT /v1/overrides":            {target: "/v1/overrides", body: `{"id":"p","action":"allow","match":{"path":"/p"},` + until + `}`},
	"DELETE /v1/overrides/{id}":    {target: "/v1/overrides/p?author=kim&reason=over"},
	"GET /v1/decision":             {target: "/v1/decision", fields: asGateway("/p")},
	"GET /livez":                   {target: "/livez"},
	"GET /readyz":                  {target: "/readyz"},
	"GET /metrics":                 {target: "/metrics"},
	"GET /openapi.json":            {target: "/openapi.json"},
}

// slotRequest names a slot that no request holds.
const slotRequest = `{"attributes":{"header:x-running":"p"},"slot":"3f0c2a9d5b7e41868c1d0e9fa2b4c6d8"}`

// played is a play of one limit.
const played = `{"lanes":[{"algorithm":"token_bucket","tokens":1,"per":"1s","capacity":2}],"traffic":{"phases":[{"shape":"burst","count":3,"seconds":5}]}}`

// each asks every operation of the document for what do makes of its plain request, and
// wants the status where the document has it. Otherwise another is as good, if the
// document has that.
func (s *service) each(t *testing.T, status int, do func(q question) question) {
	t.Helper()
	for path, item := range s.doc.Paths.Map() {
		for method, o := range item.Operations() {
			q, ok := plain[method+" "+path]
			if !ok {
				t.Errorf("%s %s has no plain request", method, path)
				continue
			}
			q.base, q.method, q.fields = s.admin, method, slices.Clone(q.fields)
			documented := o.Responses.Status(status) != nil
			if a := s.ask(t, do(q)); documented && a.status != status {
				t.Errorf("%s %s: %d, want %d\n%.300s", method, path, a.status, status, a.body)
			}
		}
	}
}

func as(role string, q question) question {
	q.fields = append(q.fields, "Authorization", "Bearer "+tokens[role])
	return q
}

// provoke sends requests to every operation for the responses that do not depend on its purpose.
func (s *service) provoke(t *testing.T) {
	s.each(t, http.StatusUnauthorized, func(q question) question {
		if q.target == "/openapi.json" { // public, but an invalid token is rejected
			q.fields = append(q.fields, "Authorization", "Bearer nobodys-token-at-all")
		}
		return q
	})
	s.each(t, http.StatusMisdirectedRequest, func(q question) question {
		_, port, _ := strings.Cut(strings.TrimPrefix(q.base, "http://"), ":") // as a browser writes it
		q.fields = append(q.fields, "Host", "rebound.example:"+port)
		return as("configure", q)
	})
	s.each(t, http.StatusRequestHeaderFieldsTooLarge, func(q question) question {
		q.fields = append(q.fields, "X-Long", strings.Repeat("x", 16<<10))
		return as("configure", q)
	})
	s.each(t, http.StatusUnsupportedMediaType, func(q question) question {
		q.fields = append(q.fields, "Content-Type", "text/plain")
		return as("configure", q)
	})
	s.each(t, http.StatusRequestEntityTooLarge, func(q question) question {
		if q.body != "" {
			most := 64 << 10
			if q.target == "/v1/play" || q.target == "/v1/request" {
				most = 1 << 20
			}
			q.body = strings.Repeat(" ", most) + q.body
		}
		return as("configure", q)
	})
	for path, item := range s.doc.Paths.Map() {
		for method := range item.Operations() {
			if len(item.Servers) > 0 {
				q := plain[method+" "+path]
				q.base, q.method = s.main, method
				s.ask(t, q) // which wants 404
			}
		}
	}
}

// provokeTooMany has every operation refuse wrong tokens, until it does not even look.
func (s *service) provokeTooMany(t *testing.T) {
	wrong := func(q question) question {
		q.fields = append(q.fields, "Authorization", "Bearer nobodys-token-at-all")
		return q
	}
	for range 20 {
		s.ask(t, wrong(question{base: s.admin, method: "GET", target: "/v1/overrides"}))
	}
	// One more is looked at each second.
	for path, item := range s.doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Responses.Status(http.StatusTooManyRequests) == nil || path == "/v1/decision" {
				continue
			}
			q := plain[method+" "+path]
			q.base, q.method, q.fields = s.admin, method, slices.Clone(q.fields)
			for attempt := 1; s.ask(t, wrong(q)).status != http.StatusTooManyRequests; attempt++ {
				if attempt == 10 {
					t.Errorf("%s %s: never 429", method, path)
					break
				}
			}
		}
	}
}

// inFlight is how many requests the admin address answers at once.
const inFlight = 64

// provokeBusy has every operation answer while as many requests are as there may be.
func (s *service) provokeBusy(t *testing.T) {
	addr := strings.TrimPrefix(s.admin, "http://")
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	hold := func() {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
		// The last byte of this body never arrives.
		fmt.Fprintf(c, "POST /v1/take HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n{\"attrib", addr, tokens["operate"])
	}
	for range inFlight {
		hold()
	}
	busy := func(q question) question { return as("configure", q) }
	for deadline := time.Now().Add(meted.Patience); ; {
		if s.ask(t, busy(question{base: s.admin, method: "GET", target: "/v1/overrides"})).status == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests at once are never too many", inFlight)
		}
		hold() // the last may have been refused, because this asked just then
	}
	for path, item := range s.doc.Paths.Map() {
		for method, o := range item.Operations() {
			if path == "/readyz" || path == "/v1/traffic/stream" || path == "/v1/watch" || o.Responses.Status(http.StatusServiceUnavailable) == nil {
				continue
			}
			q := plain[method+" "+path]
			q.base, q.method, q.fields = s.admin, method, slices.Clone(q.fields)
			if a := s.ask(t, busy(q)); a.status != http.StatusServiceUnavailable {
				t.Errorf("%s %s: %d, want 503", method, path, a.status)
			}
		}
	}
}
