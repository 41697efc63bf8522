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

// The admin API limits its callers by token name, or by address without a token. It limits wrong tokens by
// address, and they never delay a valid token.
const (
	callerRate, callerBurst             = 500, 1000 // requests per second, and the burst
	wrongRate, wrongBurst               = 1, 10
	anonymousLogRate, anonymousLogBurst = 1, 10  // for log lines about callers without a token
	maxCallers                          = 10_000 // addresses with their own limit
)

// access authenticates and limits the callers of the admin address. It is safe for concurrent use.
type access struct {
	tokens atomic.Pointer[[]token]
	open   bool   // local callers may read without a token
	public bool   // /metrics needs no token
	secret []byte // key for the hashes of tokens, for comparison in constant time
	calls  *keyed.Limiter
	wrong  *keyed.Limiter
	told   *keyed.Limiter

	signIns signIns // sessions from links to the dashboard
}

type token struct {
	hash [sha256.Size]byte
	name string
	role httpapi.Role
}

// A caller is the sender of a request. The zero caller has no token.
type caller struct {
	name string
	role httpapi.Role
}

// openAccess returns the access to the admin address. If the settings have no tokens, it creates one and saves it
// in a file.
func (a *assembly) openAccess() (*access, error) {
	c := a.config
	access := &access{secret: []byte(rand.Text()), open: len(c.AdminTokens) == 0, public: c.PublicMetrics}
	for _, l := range []struct {
		limiter     **keyed.Limiter
		rate, burst int
	}{{&access.calls, callerRate, callerBurst}, {&access.wrong, wrongRate, wrongBurst}, {&access.told, anonymousLogRate, anonymousLogBurst}} {
		var err error
		if *l.limiter, err = perSecond(l.rate, l.burst); err != nil {
			return nil, err
		}
	}
	access.setTokens(c.AdminTokens)
	a.followTokens(access)
	a.link = func() string { return "" }
	if !access.open {
		return access, nil
	}
	made, err := admintoken.Create(a.admin.String())
	if err != nil {
		a.log.Warn("admin API is read-only", "reason", "admin_tokens is empty, and the server cannot save a token", "err", err)
		return access, nil
	}
	access.tokens.Store(&[]token{{access.hash(made.Token), "local", httpapi.RoleConfigure}})
	a.tokenFile = made.Path
	a.link = func() string {
		token, _ := access.newLink(access.hash(made.Token))
		return baseURL(a.config.AdminTLS, a.admin) + boardPath + "#token=" + token
	}
	a.add(newCloser("admin token", made.Remove))
	return access, nil
}

// setTokens replaces the known tokens.
func (a *access) setTokens(list []config.AdminToken) {
	tokens := make([]token, 0, len(list))
	for _, t := range list {
		tokens = append(tokens, token{a.hash(t.Token), t.Name, t.Role})
	}
	a.tokens.Store(&tokens)
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

// find returns the caller with an admin token or with the token of a session.
func (a *access) find(secret string) (found caller, ok bool) {
	hash := a.hash(secret)
	if found, ok = a.callerByHash(hash); !ok {
		if admin, session := a.adminOf(hash); session {
			return a.callerByHash(admin)
		}
	}
	return found, ok
}

// callerByHash returns the caller of the admin token with this hash. It compares all tokens in constant time.
func (a *access) callerByHash(hash [sha256.Size]byte) (found caller, ok bool) {
	tokens := *a.tokens.Load()
	for i := range tokens {
		if t := &tokens[i]; hmac.Equal(hash[:], t.hash[:]) {
			found, ok = caller{t.name, t.role}, true
		}
	}
	return found, ok
}

// authenticate returns the caller of r. It returns false for an unknown token and for an invalid Authorization
// header.
func (a *access) authenticate(r *http.Request) (c caller, ok bool) {
	switch sent := r.Header["Authorization"]; {
	case len(sent) > 1:
		return caller{}, false
	case len(sent) == 1:
		scheme, secret, _ := strings.Cut(sent[0], " ")
		if !strings.EqualFold(scheme, "Bearer") || len(secret) > config.MaxToken {
			return caller{}, false
		}
		return a.find(strings.TrimSpace(secret))
	case a.open && onLoopback(r) && isDirectLocalClient(r):
		return caller{role: httpapi.RoleRead}, true
	}
	return caller{}, true
}

type callerKey struct{}

// roleOf returns the role of a request that passed enter.
func roleOf(r *http.Request) httpapi.Role {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.role
}

func callerName(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.name
}

// enter authenticates and limits callers. It does not limit health checks, nor /v1/decision and the paths below
// it, which have their own check.
func (a *access) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == "/livez" || path == "/readyz" || isDecision(path) {
			next.ServeHTTP(w, r)
			return
		}
		c, ok := a.authenticate(r)
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
			answerProblem(w, r, http.StatusUnauthorized, "unknown token; send one of admin_tokens as Authorization: Bearer TOKEN")
			return
		}
		if r.URL.Path == "/metrics" && c.role < httpapi.RoleRead && !a.public {
			w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete"`}
			answerProblem(w, r, http.StatusUnauthorized, "/metrics requires a token with the role read, unless public_metrics is set")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// network returns the address prefix for limits: /64 for IPv6, like the prefix for clients.
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
	answerProblem(w, r, http.StatusTooManyRequests, "too many requests to the admin API; try again later")
}

func answerProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	ratelimitfields.Write(w, r, api.NewProblem(status, detail))
}

// auditor returns the caller for the audit trail. Requests without a token are not recorded, so that they cannot
// fill the log.
func (a *access) auditor(r *http.Request) (audit.Caller, bool) {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return audit.Caller{Name: c.name, From: network(r.RemoteAddr)}, c.name != "" || a.told.Take("", 1).Allowed
}

// tokenInterval is the polling interval for token files.
const tokenInterval = time.Second

// followTokens reloads tokens from files when the files change, so that an operator can revoke a token without a
// restart. An invalid token never replaces a valid one.
func (a *assembly) followTokens(access *access) {
	known := slices.Clone(a.config.AdminTokens)
	var mu sync.Mutex // guards known
	for i := range known {
		if known[i].File == "" {
			continue
		}
		t := &known[i]
		loop := &follow.Loop{
			Interval: tokenInterval,
			Read: func(context.Context, bool) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				next, err := config.ReadToken(t.File)
				if err != nil || next == t.Token {
					return false, err
				}
				t.Token = next
				access.setTokens(known)
				return true, nil
			},
			Report: func(news follow.News, err error) {
				switch news {
				case follow.NewsFailed:
					a.log.Error("token not replaced, old token stays active", "name", t.Name, "err", err)
				case follow.NewsChanged:
					a.log.Info("token replaced", "name", t.Name)
				case follow.NewsRecovered:
					a.log.Info("token readable again, unchanged", "name", t.Name)
				}
			},
		}
		a.add(background("token "+t.Name, loop.Run))
	}
}
