// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// The client sees mete's result: the remaining tokens of an allowed request, and the reason and retry time
// of a denied one.
func TestAnswers(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		client := from.another()
		for _, left := range []string{"4", "3", "2", "1", "0"} {
			a := s.send(t, client, login)
			if a.status != 200 || a.rule() != "login "+left || a.header.Get("RateLimit-Policy") != `"login";q=5;w=3600` {
				t.Errorf("got %d with %v, want 200 with %s left of login", a.status, a.header, left)
			}
			if s.service.last() != "POST /login 3" || a.body != "POST /login" {
				t.Errorf("the service was sent %q, want POST /login with its body", s.service.last())
			}
		}
		for range 2 {
			a := s.send(t, client, login)
			wait, err := strconv.Atoi(a.header.Get("Retry-After"))
			if a.status != 429 || err != nil || wait < 700 || wait > 1081 || a.rule() != "login 0" ||
				a.header.Get("X-RateLimit-Reason") != "token_bucket_exceeded" || a.header.Get("RateLimit-Policy") == "" {
				t.Errorf("denied: got %d with %v, want 429 with when and why", a.status, a.header)
			}
			s.wantProblem(t, a, "quota-exceeded", "login")
		}
		if a := s.send(t, client, get); a.status != 200 || a.rule() != "address 99" {
			t.Errorf("another path: got %d with %v, want 200 by rule address", a.status, a.header)
		}
		if a := s.send(t, from.another(), login); a.status != 200 || a.rule() != "login 4" {
			t.Errorf("another client: got %d with %v, want 200", a.status, a.header)
		}
		if got := s.service.requests(); got != 7 {
			t.Errorf("the service was sent %d requests, want the 7 that were allowed", got)
		}
	})
}

// wantProblem checks the kind of problem in the body. It checks mete's detail only for gateways that
// forward it.
func (s *site) wantProblem(t *testing.T, a answer, kind, detail string) {
	t.Helper()
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	err := json.Unmarshal([]byte(a.body), &problem)
	if err != nil || a.header.Get("Content-Type") != "application/problem+json" || problem.Status != a.status ||
		!strings.HasSuffix(problem.Type, kind) || problem.Title == "" {
		t.Errorf("%d: got %q as %s, want a problem %s", a.status, a.body, a.header.Get("Content-Type"), kind)
	}
	if s.hasDetail != strings.Contains(problem.Detail, detail) {
		t.Errorf("%d: got the detail %q, and mete's own is there: want %v", a.status, problem.Detail, s.hasDetail)
	}
}

// The other denials that mete has: 403 for what lacks an attribute, and 400 for what
// servers read differently.
func TestAnswers_OtherDenials(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		a := s.send(t, from.another(), "GET /api/things HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		if a.status != 403 || a.header.Get("X-RateLimit-Reason") != "missing_attribute" {
			t.Errorf("without a key: got %d with %v, want 403", a.status, a.header)
		}
		s.wantProblem(t, a, "blank", "key")
		a = s.send(t, from.another(), "GET /api/things HTTP/1.1\r\nHost: shop.example\r\nX-Api-Key: k1\r\n\r\n")
		if items := a.header.Get("RateLimit"); a.status != 200 || !strings.Contains(items, `"key";r=49`) || !strings.Contains(items, `"address";r=99`) {
			t.Errorf("with a key: got %d with %v, want 200 by two rules", a.status, a.header)
		}
		a = s.send(t, from.another(), "GET /api/%2e%2e/login HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		if a.status != 400 {
			t.Errorf("a path that is disputed: got %d with %v, want 400", a.status, a.header)
		}
		s.wantProblem(t, a, "blank", "differently")
		if got := s.service.requests(); got != 1 {
			t.Errorf("the service was sent %d requests, want the one with a key", got)
		}
	})
}

// While the store is down, mete returns 503 for a closed rule and 200 for an open one. Gateways that fail
// open must not treat the 503 as an unavailable mete.
func TestAnswers_StoreDown(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		redis := proctest.StartRedis(t)
		s := start(t, k, setup{mete: []edit{{"policy:", "store: redis://" + redis.Addr + "?timeout=1m\npolicy:"}}})
		from := newClients()
		client := from.another()
		var a answer
		for try := 0; try == 0 || a.status == 503 && try < 20; try++ { // a slow store is none: another's first login
			a = s.send(t, client, login)
			if a.status == 503 {
				client = from.another()
			}
		}
		if a.status != 200 {
			t.Errorf("with the store: got %d %s, want 200", a.status, a.body)
		}
		redis.Kill()
		for range 2 {
			a := s.send(t, client, login)
			if a.status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("X-RateLimit-Reason") != "store_error" {
				t.Errorf("without the store, rule closed: got %d with %v, want 503 with when and why", a.status, a.header)
			}
			s.wantProblem(t, a, "temporary-reduced-capacity", "could not be checked")
		}
		if a := s.send(t, client, get); a.status != 200 || a.rule() != "" {
			t.Errorf("without the store, rule open: got %d with %v, want 200 without fields", a.status, a.header)
		}
	})
}

// No request passes a mete that does not trust the gateway or has no decision profile.
func TestAnswers_AskedWrongly(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s := start(t, k, setup{mete: []edit{{"trusted_proxies: [127.0.0.1]", "trusted_proxies: [192.0.2.1]"}}})
		if a := s.send(t, newClients().another(), get); a.status != 403 || s.service.requests() != 0 {
			t.Errorf("a stranger: got %d %s, want 403", a.status, a.body)
		}
		s = start(t, k, setup{mete: []edit{{"decision_profile: " + k.name + "\n", ""}}})
		if a := s.send(t, newClients().another(), get); a.status != k.wrong || s.service.requests() != 0 {
			t.Errorf("no /v1/decision: got %d %s, want %d", a.status, a.body, k.wrong)
		}
	})
}
