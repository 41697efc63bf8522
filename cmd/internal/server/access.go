// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/admintoken"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/keyed"
)

// The admin API is itself limited: callers by the name of their token or else by their
// address, and wrong tokens by their address. Wrong tokens never delay a right one.
const (
	callerRate, callerBurst = 500, 1000 // a second, and at once
	wrongRate, wrongBurst   = 1, 10
	toldRate, toldBurst     = 1, 10  // lines of the log about those without a token
	maxCallers              = 10_000 // addresses that are kept apart
)

// access decides what each caller may do at the admin address. It is safe for concurrent use.
type access struct {
	tokens atomic.Pointer[[]token]
	open   bool   // who asks from this machine may look without one
	public bool   // /metrics is for everybody
	secret []byte // tokens are compared by their keyed hashes
	calls  *keyed.Limiter
	wrong  *keyed.Limiter
	told   *keyed.Limiter

	signIns signIns // by links to the dashboard
}

// A token is a known token.
type token struct {
	hash [sha256.Size]byte
	name string
	role httpapi.Role
}

// A caller sends a request. The zero caller has no name.
type caller struct {
	name string
	role httpapi.Role
}

// openAccess returns the access to the admin address. If the settings have no tokens, the
// server makes one in a file.
func (a *assembly) openAccess() (*access, error) {
	c := a.config
	access := &access{secret: []byte(rand.Text()), open: len(c.AdminTokens) == 0, public: c.PublicMetrics}
	for _, l := range []struct {
		limiter     **keyed.Limiter
		rate, burst int
	}{{&access.calls, callerRate, callerBurst}, {&access.wrong, wrongRate, wrongBurst}, {&access.told, toldRate, toldBurst}} {
		var err error
		if *l.limiter, err = perSecond(l.rate, l.burst); err != nil {
			return nil, err
		}
	}
	if err := access.know(c.AdminTokens); err != nil { // config has checked them
		return nil, err
	}
	a.followTokens(access)
	a.link = func() string { return "" }
	if !access.open {
		return access, nil
	}
	made, err := admintoken.Make(a.admin.String())
	if err != nil {
		a.log.Warn("admin API is read-only: admin_tokens is empty, and the token of this server cannot be saved", "err", err)
		return access, nil
	}
	access.tokens.Store(&[]token{{access.hash(made.Token), "local", httpapi.Configure}})
	a.tokenFile = made.Path
	a.link = func() string {
		token, _ := access.newLink(access.hash(made.Token))
		return baseURL(a.config.AdminTLS, a.admin) + boardPath + "#token=" + token
	}
	a.add(closing("admin token", made.Remove))
	return access, nil
}

// know puts these tokens in the place of those that are known.
func (a *access) know(list []config.AdminToken) error {
	tokens := make([]token, 0, len(list))
	for _, t := range list {
		role, err := httpapi.ParseRole(t.Role)
		if err != nil {
			return err
		}
		tokens = append(tokens, token{a.hash(t.Token), t.Name, role})
	}
	a.tokens.Store(&tokens)
	return nil
}

func perSecond(rate, burst int) (*keyed.Limiter, error) {
	limit, err := bucket.NewLimit(bucket.Tokens(burst)*bucket.Token, bucket.Rate{Tokens: bucket.Tokens(rate) * bucket.Token, Per: time.Second})
	if err != nil {
		return nil, err
	}
	return keyed.New(limit, keyed.Config{MaxKeys: maxCallers})
}

func (a *access) hash(secret string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, a.secret)
	mac.Write([]byte(secret))
	return [sha256.Size]byte(mac.Sum(nil))
}

// find returns the caller of a token, or of a session that stands for one.
func (a *access) find(secret string) (found caller, ok bool) {
	hash := a.hash(secret)
	if found, ok = a.tokenOf(hash); !ok {
		if admin, session := a.adminOf(hash); session {
			return a.tokenOf(admin)
		}
	}
	return found, ok
}

// tokenOf returns the caller of the admin token with this hash. It takes as long for every
// token: each is compared, by hashes whose key is secret.
func (a *access) tokenOf(hash [sha256.Size]byte) (found caller, ok bool) {
	tokens := *a.tokens.Load()
	for i := range tokens {
		if t := &tokens[i]; hmac.Equal(hash[:], t.hash[:]) {
			found, ok = caller{t.name, t.role}, true
		}
	}
	return found, ok
}

// who returns the caller. Not ok is an unknown token, or one in a form that HTTP does not
// have.
func (a *access) who(r *http.Request) (c caller, ok bool) {
	switch sent := r.Header["Authorization"]; {
	case len(sent) > 1:
		return caller{}, false
	case len(sent) == 1:
		scheme, secret, _ := strings.Cut(sent[0], " ")
		if !strings.EqualFold(scheme, "Bearer") || len(secret) > config.MaxToken {
			return caller{}, false
		}
		return a.find(strings.TrimSpace(secret))
	case a.open && onLoopback(r) && asksItself(r):
		return caller{role: httpapi.Read}, true
	}
	return caller{}, true
}

type callerKey struct{}

// roleOf is the role of who sent a request that enter let through.
func roleOf(r *http.Request) httpapi.Role {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.role
}

// callerName returns the name of the caller's token.
func callerName(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.name
}

// enter finds out who asks, and limits them. What asks whether the server is there
// passes as it is, and so do gateways, who have a check of their own.
func (a *access) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez", "/readyz", "/v1/decision":
			next.ServeHTTP(w, r)
			return
		}
		c, ok := a.who(r)
		limit, key := a.calls, "token "+c.name
		switch {
		case !ok:
			limit, key = a.wrong, "wrong "+network(r.RemoteAddr)
		case c.name == "":
			key = "address " + network(r.RemoteAddr)
		}
		if s := limit.Take(key, 1); !s.Allowed {
			tooMany(w, r, s.RetryAfter)
			return
		}
		if !ok {
			w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete", error="invalid_token"`} // RFC 6750 §3
			answerProblem(w, r, http.StatusUnauthorized, "nobody has this token; send one of admin_tokens as Authorization: Bearer TOKEN")
			return
		}
		if r.URL.Path == "/metrics" && c.role < httpapi.Read && !a.public {
			w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete"`}
			answerProblem(w, r, http.StatusUnauthorized, "metrics take a token of the role read; or say public_metrics")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// network is what an address is limited by: IPv6 by its /64, as clients are.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is6() {
		p, _ := addr.Prefix(64)
		return p.String()
	}
	return addr.String()
}

func tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	w.Header()["Retry-After"] = []string{strconv.Itoa(int((wait + time.Second - 1) / time.Second))}
	answerProblem(w, r, http.StatusTooManyRequests, "administrators, too, may ask only so often; try again later")
}

func answerProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	ratelimitfields.Write(w, r, api.NewProblem(status, detail))
}

// auditor identifies who asks for the audit. Requests without a token do not fill the log.
func (a *access) auditor(r *http.Request) (audit.Caller, bool) {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return audit.Caller{Name: c.name, From: network(r.RemoteAddr)}, c.name != "" || a.told.Take("", 1).Allowed
}

// followTokens activates the tokens in files as the files change: a token that has leaked is
// revoked without a restart. An invalid token never replaces a valid one.
func (a *assembly) followTokens(access *access) {
	known := slices.Clone(a.config.AdminTokens)
	var mu sync.Mutex // guards known
	for i := range known {
		if known[i].File == "" {
			continue
		}
		t := &known[i]
		loop := &follow.Loop{
			Interval: fileInterval,
			Look: func(context.Context, bool) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				before := t.Token
				next, err := config.ReadToken(t.File)
				if err != nil || next == before {
					return false, err
				}
				t.Token = next
				if err := access.know(known); err != nil {
					t.Token = before
					return false, err
				}
				return true, nil
			},
			Tell: func(news follow.News, err error) {
				switch news {
				case follow.Failed:
					a.log.Error("token not replaced, old token stays active", "name", t.Name, "err", err)
				case follow.Changed:
					a.log.Info("token replaced", "name", t.Name)
				case follow.Recovered:
					a.log.Info("token readable again, unchanged", "name", t.Name)
				}
			},
		}
		a.add(background("token "+t.Name, loop.Run))
	}
}
