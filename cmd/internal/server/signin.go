// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/internal/admintoken"
)

const (
	linkLifetime = 10 * time.Minute // lifetime of an unused link
	sessionLife  = 12 * time.Hour
	maxLinks     = 8  // unused links; the oldest one is dropped
	maxSessions  = 64 // concurrent sessions; the oldest one is dropped

	maxSignInBytes = 1 << 10 // bound of a request body
)

// signIns holds one-time link tokens for the dashboard and the sessions created from them. It stores only keyed
// hashes of tokens. It is safe for concurrent use.
type signIns struct {
	mu       sync.Mutex
	links    []pass
	sessions []pass
}

// A pass grants the role of an admin token until it expires or the admin token is removed.
type pass struct {
	hash  [sha256.Size]byte
	admin [sha256.Size]byte // hash of the admin token
	ends  time.Time
}

// addPass adds a pass and drops the oldest ones above the maximum.
func addPass(list []pass, p pass, most int) []pass {
	list = slices.DeleteFunc(list, func(q pass) bool { return !q.ends.After(time.Now()) })
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, p)
}

// findPass returns the index of the active pass with a hash, or -1. It compares all passes in constant time.
func findPass(list []pass, hash [sha256.Size]byte) int {
	found, now := -1, time.Now()
	for i := range list {
		if hmac.Equal(list[i].hash[:], hash[:]) && list[i].ends.After(now) {
			found = i
		}
	}
	return found
}

// newLink returns a one-time token for the holder of an admin token.
func (a *access) newLink(admin [sha256.Size]byte) (token string, ends time.Time) {
	token, ends = rand.Text(), time.Now().Add(linkLifetime) // 130 random bits
	a.signIns.mu.Lock()
	defer a.signIns.mu.Unlock()
	a.signIns.links = addPass(a.signIns.links, pass{a.hash(token), admin, ends}, maxLinks)
	return token, ends
}

// redeem exchanges a one-time token for a session.
func (a *access) redeem(link string) (session string, ends time.Time, ok bool) {
	hash := a.hash(link)
	a.signIns.mu.Lock()
	defer a.signIns.mu.Unlock()
	i := findPass(a.signIns.links, hash)
	if i < 0 {
		return "", time.Time{}, false
	}
	admin := a.signIns.links[i].admin
	a.signIns.links = slices.Delete(a.signIns.links, i, i+1)
	session, ends = rand.Text(), time.Now().Add(sessionLife)
	a.signIns.sessions = addPass(a.signIns.sessions, pass{a.hash(session), admin, ends}, maxSessions)
	return session, ends, true
}

// adminOf returns the hash of the admin token behind a session.
func (a *access) adminOf(session [sha256.Size]byte) (admin [sha256.Size]byte, ok bool) {
	a.signIns.mu.Lock()
	defer a.signIns.mu.Unlock()
	i := findPass(a.signIns.sessions, session)
	if i < 0 {
		return admin, false
	}
	return a.signIns.sessions[i].admin, true
}

// serveSignIn serves POST link, which creates a link for the caller's admin token, and POST session, which
// exchanges a link's token for a session. Both endpoints only accept programs on this machine. It delegates other
// requests to next.
func (a *access) serveSignIn(next http.Handler) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/")
		if r.Method != http.MethodPost || path != "link" && path != "session" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case browsers.Check(r) != nil:
			answerProblem(w, r, http.StatusForbidden, "pages of other origins cannot sign in")
		case !onLoopback(r) || !isDirectLocalClient(r):
			answerProblem(w, r, http.StatusForbidden, "dashboard links only work on the machine of the server; sign in with a token")
		case path == "link":
			a.serveLink(w, r)
		default:
			a.serveSession(w, r)
		}
	})
}

func (a *access) serveLink(w http.ResponseWriter, r *http.Request) {
	_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	hash := a.hash(strings.TrimSpace(secret))
	if _, ok := a.callerByHash(hash); !ok { // no token, or the token of a session
		w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete"`}
		answerProblem(w, r, http.StatusUnauthorized, "a link to the dashboard needs an admin token; send it as Authorization: Bearer TOKEN")
		return
	}
	token, ends := a.newLink(hash)
	answerSignIn(w, token, ends)
}

// serveSession exchanges a link's token for a session. Wrong tokens are rate limited like wrong admin tokens and
// never delay valid ones.
func (a *access) serveSession(w http.ResponseWriter, r *http.Request) {
	var sent struct{ Token string }
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignInBytes))
	if err != nil || json.Unmarshal(text, &sent) != nil {
		answerProblem(w, r, http.StatusBadRequest, `send {"token": "…"}`)
		return
	}
	session, ends, ok := a.redeem(sent.Token)
	if ok {
		answerSignIn(w, session, ends)
		return
	}
	if s := a.wrong.Take("wrong "+network(r.RemoteAddr), 1); !s.Allowed {
		tooMany(w, r, s.RetryAfter)
		return
	}
	answerProblem(w, r, http.StatusUnauthorized, "the link was used before or has expired; run 'mete dashboard' for a new one")
}

func answerSignIn(w http.ResponseWriter, token string, ends time.Time) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admintoken.SignIn{Token: token, ExpiresAt: ends.UTC().Truncate(time.Second)}) // the client may have disconnected
}
