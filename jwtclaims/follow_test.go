// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/jwtclaims"
)

// An issuer is a key set that changes, at a URL.
type issuer struct {
	set    atomic.Pointer[string]
	status atomic.Int64
	asked  atomic.Int64
}

func newIssuer(set string) *issuer {
	i := new(issuer)
	i.publish(set)
	return i
}

func (i *issuer) publish(set string) {
	i.status.Store(http.StatusOK)
	i.set.Store(&set)
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.asked.Add(1)
	w.WriteHeader(int(i.status.Load()))
	io.WriteString(w, *i.set.Load())
}

// client asks the issuer without a network, in the time of the test.
func (i *issuer) client() *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		i.ServeHTTP(w, r)
		return w.Result(), nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFollow_File(t *testing.T) {
	var log testkit.Log
	path := file(t, keySet(jwk("ed", edKey())))
	v := start(t, jwtclaims.Config{KeySet: path, Interval: 10 * time.Millisecond, Logger: log.Logger()})
	old := good(t)
	if got := claim(v, old, "plan"); got != "pro" {
		t.Fatalf("under the first keys: got %q, want pro", got)
	}
	for i, broken := range []string{"", "{", "[]", "{}", "null", `{"keys":{}}`, `{"keys":[1]}`} {
		write(t, path, broken)
		failed := v.Stats().ReadsFailed
		testkit.Until(t, "the broken set is noticed", func() bool { return v.Stats().ReadsFailed > failed })
		if got := claim(v, old, "plan"); got != "pro" {
			t.Errorf("broken set %d, %q: got %q, want pro by the old keys", i, broken, got)
		}
	}
	testkit.Until(t, "the log says so", func() bool { return log.Count("cannot read key set; keeping old keys") > 0 })
	successor := newEdKey()
	write(t, path, keySet(jwk("new", successor)))
	testkit.Until(t, "the new keys are in force", func() bool {
		return claim(v, sign(t, "EdDSA", "new", successor, claims(nil)), "plan") == "pro"
	})
	if got := claim(v, old, "plan"); got != missing {
		t.Errorf("a token of the old key: got %q, want none: it was remembered", got)
	}
	write(t, path, keySet())
	testkit.Until(t, "all keys are withdrawn", func() bool { return v.Stats().Keys == 0 })
	if log.Count("no usable key") != 1 {
		t.Errorf("the log does not say that there are no keys:\n%s", &log)
	}
}

// Reading the same set again keeps the cached tokens.
func TestFollow_TheSameSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(keySet(jwk("ed", edKey())))
		v := start(t, jwtclaims.Config{KeySet: "https://id.example.com/jwks", Client: issuer.client(), Interval: time.Second})
		token := good(t)
		claim(v, token, "plan")
		time.Sleep(10500 * time.Millisecond)
		claim(v, token, "plan")
		if s := v.Stats(); s.Reads != 11 || s.Changes != 1 || s.Verified != 1 || s.Cached != 1 || time.Since(s.ReadAt) != 500*time.Millisecond {
			t.Errorf("%+v; want 11 reads, one change, one verified and one remembered", s)
		}
	})
}

func TestFollow_URL(t *testing.T) {
	issuer := newIssuer(keySet(jwk("ed", edKey())))
	server := httptest.NewServer(issuer)
	defer server.Close()
	v := start(t, jwtclaims.Config{KeySet: server.URL + "/jwks.json", Interval: 10 * time.Millisecond})
	old := good(t)
	if got := claim(v, old, "plan"); got != "pro" {
		t.Fatalf("under the first keys: got %q, want pro; refused %v", got, refusals(v))
	}
	issuer.status.Store(http.StatusInternalServerError)
	failed := v.Stats().ReadsFailed
	testkit.Until(t, "the failure is counted", func() bool { return v.Stats().ReadsFailed > failed })
	if got := claim(v, old, "plan"); got != "pro" {
		t.Errorf("while the URL fails: got %q, want pro by the last keys", got)
	}
	successor := newEdKey()
	issuer.publish(keySet(jwk("new", successor)))
	testkit.Until(t, "the new key is in force", func() bool {
		return claim(v, sign(t, "EdDSA", "new", successor, claims(nil)), "plan") == "pro"
	})
	if got := claim(v, old, "plan"); got != missing {
		t.Errorf("a token of the old key: got %q, want none", got)
	}
}

// A token of a new key brings the next look forward, and no flood of them brings
// more than one each ten seconds.
func TestFollow_UnknownKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(keySet(jwk("ed", edKey())))
		v := start(t, jwtclaims.Config{KeySet: "https://id.example.com/jwks", Client: issuer.client(), Interval: time.Hour})
		time.Sleep(time.Minute)
		successor := newEdKey()
		issuer.publish(keySet(jwk("ed", edKey()), jwk("new", successor)))
		token := sign(t, "EdDSA", "new", successor, claims(nil))
		claim(v, token, "plan")
		synctest.Wait()
		if got := claim(v, token, "plan"); got != "pro" {
			t.Errorf("the second request with the new key: got %q, want pro; refused %v", got, refusals(v))
		}
		before := issuer.asked.Load()
		for i := range 600 { // a minute
			claim(v, sign(t, "EdDSA", fmt.Sprint("forged ", i), successor, claims(nil)), "plan")
			time.Sleep(100 * time.Millisecond)
		}
		if got := issuer.asked.Load() - before; got < 5 || got > 6 {
			t.Errorf("asked %d times in a minute of unknown keys, want 6", got)
		}
		time.Sleep(time.Minute) // what the last one wanted
		before = issuer.asked.Load()
		time.Sleep(30 * time.Minute)
		if got := issuer.asked.Load() - before; got != 0 {
			t.Errorf("asked %d times in half an hour of quiet, want none", got)
		}
	})
}

func TestNew_URLIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		issuer := newIssuer(keySet(jwk("ed", edKey())))
		issuer.status.Store(http.StatusServiceUnavailable)
		v := start(t, jwtclaims.Config{KeySet: "https://id.example.com/jwks", Client: issuer.client(), Logger: log.Logger()})
		if got := claim(v, good(t), "plan"); got != missing || refusals(v)[jwtclaims.ReasonUnknownKey] != 1 {
			t.Errorf("without keys: got %q, refused %v; want none", got, refusals(v))
		}
		if log.Count("rejecting all tokens") != 1 {
			t.Errorf("the log does not say that there are no keys:\n%s", &log)
		}
		time.Sleep(4 * time.Second) // after 1 s and 2 s more
		if got := issuer.asked.Load(); got != 3 {
			t.Errorf("asked %d times in the first 4 s, want 3", got)
		}
		issuer.publish(keySet(jwk("ed", edKey())))
		time.Sleep(time.Minute)
		if got := claim(v, good(t), "plan"); got != "pro" {
			t.Errorf("once the URL answers: got %q, want pro", got)
		}
		if log.Count("key set readable again") != 1 || log.Count("level=ERROR") != 1 {
			t.Errorf("want one line that it failed and one that it works:\n%s", &log)
		}
	})
}

func TestNew_BadResponses(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	plain := httptest.NewServer(newIssuer(keySet(jwk("ed", edKey()))))
	defer plain.Close()
	downgrade := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer downgrade.Close()
	large := httptest.NewServer(newIssuer(`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`))
	defer large.Close()
	loop := httptest.NewServer(http.RedirectHandler("/", http.StatusFound))
	defer loop.Close()
	broken := func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }
	for _, tt := range []struct {
		what, url string
		client    *http.Client
		want      string
	}{
		{"nobody there", down.URL, nil, "refused"},
		{"from https to http", downgrade.URL, downgrade.Client(), "from https to http"},
		{"too large", large.URL, nil, "larger than 1048576 bytes"},
		{"a loop", loop.URL, nil, "more than 3 redirects"},
		{"a broken client", "https://id.example.com", &http.Client{Transport: roundTripper(broken)}, "broken"},
	} {
		var log testkit.Log
		v := start(t, jwtclaims.Config{KeySet: tt.url + "/keys?secret=canary", Client: tt.client, Logger: log.Logger()})
		if n := log.Count("canary"); n > 0 { // a query may have a credential in it
			t.Errorf("%s: the query is logged:\n%s", tt.what, &log)
		}
		if log.Count(tt.want) == 0 || v.Stats().Keys != 0 || v.Stats().ReadsFailed == 0 {
			t.Errorf("%s: %d keys, log:\n%s\nwant %q in it", tt.what, v.Stats().Keys, &log, tt.want)
		}
	}
}

// Keys change under requests: each is verified by one set, and a token whose key is
// in all of them is good throughout.
func TestFollow_UnderLoad(t *testing.T) {
	stable, path := good(t), file(t, keySet(jwk("ed", edKey())))
	v := start(t, jwtclaims.Config{KeySet: path, Interval: 10 * time.Millisecond, CachedTokens: 1})
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if got := claim(v, stable, "plan"); got != "pro" {
						t.Errorf("while keys change: got %q, want pro", got)
						return
					}
				}
			}
		})
	}
	for i := range 20 {
		changes := v.Stats().Changes
		write(t, path, keySet(jwk("ed", edKey()), jwk(fmt.Sprint(i), newEdKey())))
		testkit.Until(t, "the change", func() bool { return v.Stats().Changes > changes })
	}
	close(stop)
	asking.Wait()
}
