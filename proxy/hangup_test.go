// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

const (
	hangUpPolicy  = `{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "100000/1d", "cost_source": "ai:tokens", "default_max_completion": 70}`
	hangUpRequest = `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "0123456789012345678901234567890123456789"}]}`
	hangUpUsage   = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":907,"total_tokens":920,"completion_tokens_details":{"reasoning_tokens":900}}}`
)

// A client that hangs up pays for hidden reasoning, over each version of HTTP: the request to the upstream is not canceled.
func TestHangUp_PaysForHiddenReasoning(t *testing.T) {
	for _, clientH2 := range []bool{false, true} {
		for _, upstreamH2 := range []bool{false, true} {
			for _, begun := range []bool{false, true} {
				t.Run(fmt.Sprintf("client h2 %v, upstream h2 %v, response begun %v", clientH2, upstreamH2, begun), func(t *testing.T) {
					t.Parallel()
					hangUp(t, clientH2, upstreamH2, begun, false)
				})
			}
		}
	}
}

// Drain ends the rest of a response when its context ends.
func TestHangUp_Drain(t *testing.T) { hangUp(t, false, false, true, true) }

func hangUp(t *testing.T, clientH2, upstreamH2, begun, drain bool) {
	arrived, gone := make(chan struct{}, 1), make(chan struct{})
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if begun {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":null}]}\n\n")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		select {
		case <-gone:
		case <-r.Context().Done():
			return
		}
		if drain {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", hangUpUsage)
	}))
	upstream.Config.Protocols = protocols(upstreamH2)
	upstream.Start()
	t.Cleanup(upstream.Close)
	m, err := policy.Load([]byte(hangUpPolicy), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan policy.Settlement, 10)
	limiter, err := mete.New(store, m, mete.Config{OnSettlement: func(_ context.Context, s *policy.Settlement) { settled <- *s }})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	if upstreamH2 {
		to.Scheme = "h2c"
	}
	p, err := proxy.New(to, mw, proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { close(gone) })
		p.ServeHTTP(w, r)
	}))
	server.Config.Protocols = protocols(clientH2)
	server.Start()
	t.Cleanup(server.Close)

	transport := &http.Transport{Protocols: protocols(clientH2)}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(hangUpRequest))
	go func() { receive(t, arrived, "request"); cancel() }()
	if res, err := transport.RoundTrip(req); err == nil {
		_, _ = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if !drain {
		wantCharged(t, settled, 920*bucket.Token)
		return
	}
	receive(t, gone, "hang-up")
	p.Drain(ctx)
	wantCharged(t, settled, 80*bucket.Token)
}
