// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
)

// A ReverseProxy answers for a provider that may have processed the request. KeepCharge tells that from a provider's error.
func TestKeepCharge(t *testing.T) {
	upstream := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.URL.Query().Has("error") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		panic(http.ErrAbortHandler)
	})
	to, _ := url.Parse(upstream.URL)
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			httplimit.KeepCharge(w)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	p := newProvider(t, tokensPolicy, reverse.ServeHTTP)
	for path, charged := range map[string]bucket.Tokens{chatPath: 60, chatPath + "?error": 0} {
		if res, _ := p.post(path, chatRequest); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
		p.wantCharge(60, charged)
	}
	other := newProvider(t, `{"name": "guesses", "limit_keys": [], "rate": "5/1s", "charge_on": {"status": [401]}}`, reverse.ServeHTTP)
	other.post("/login", "{}")
	other.wantCharge(1, 0)
}

// A handler that panics has no answer of the provider.
func TestAI_PanicKeepsTheCharge(t *testing.T) {
	p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("late") {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}],`)
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	for _, path := range []string{chatPath, chatPath + "?late"} {
		if res, err := http.Post(p.URL+path, "application/json", strings.NewReader(chatRequest)); err == nil {
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}
		p.wantCharge(60, 60)
	}

	r := httptest.NewRequest(http.MethodPost, chatPath, strings.NewReader(chatRequest))
	admission, ok := p.limits.Admit(httptest.NewRecorder(), r)
	if !ok {
		t.Fatal("denied")
	}
	func() {
		defer func() { _ = recover() }()
		admission.Run(r, func() httplimit.Response { panic("broken") })
	}()
	p.wantCharge(60, 60)
}

// A body that breaks off is charged its reservation, because the provider may have more.
func TestModelTransport_BrokenBody(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		chunk(w, content("hello"))
		panic(http.ErrAbortHandler)
	})
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{})
	if _, got, err := c.post(server.URL+chatPath, chatStream); err == nil {
		t.Errorf("got %q without an error", got)
	}
	c.wantCharge(60, 60)
}

// A TLS handshake that fails sends nothing of the request.
func TestModelTransport_FailedHandshake(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{Base: &http.Transport{}}) // which does not know the certificate
	if _, _, err := c.post(server.URL+chatPath, chatRequest); err == nil {
		t.Fatal("no error")
	}
	d, err := c.limiter.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:model": "m", "ai:prompt_tokens": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if left := d.Limits()[0].Remaining(); left != 1000*bucket.Token {
		t.Errorf("%v of 1000 tokens are left", left)
	}
}
