// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/provider"
)

// Each format is answered as JSON and as a stream, with every kind of usage.
func TestFormats(t *testing.T) {
	g := start(t, "rules:"+each)
	for _, w := range wires {
		for _, tt := range []struct {
			what string
			question
			charged int
		}{
			{"json", question{}, 30},
			{"json-gzip", question{Plan: provider.Plan{Gzip: true}}, 30},
			{"json-hidden", question{Plan: provider.Plan{Reasoning: 7}}, 37},
			{"json-none", question{Plan: provider.Plan{Usage: provider.NoUsage}}, 30},
			{"json-low", question{Plan: provider.Plan{Usage: provider.LowUsage}}, 30},
			{"json-529", question{Plan: provider.Plan{Status: 529}}, 0},
			{"stream", question{stream: true}, 30},
			{"stream-gzip", question{stream: true, Plan: provider.Plan{Gzip: true}}, 30},
			{"stream-hidden", question{stream: true, Plan: provider.Plan{Reasoning: 7}}, 37},
			{"stream-growing", question{stream: true, Plan: provider.Plan{Usage: provider.GrowingUsage}}, 30},
			{"stream-none", question{stream: true, Plan: provider.Plan{Usage: provider.NoUsage}}, 30},
			{"stream-low", question{stream: true, Plan: provider.Plan{Usage: provider.LowUsage}}, 30},
			{"stream-without-end", question{stream: true, Plan: provider.Plan{NoEnd: true}}, 30},
			{"stream-cut", question{stream: true, Plan: provider.Plan{Cut: 2}}, 110}, // its reservation: the provider may bill the rest
			{"stream-503", question{stream: true, Plan: provider.Plan{Status: 503}}, 0},
		} {
			q := tt.question
			q.wire, q.prompt, q.most, q.ID = w, 10, 100, w.name+"-"+tt.what
			q.model = q.ID // the ratio of each one is apart
			q.Events = []int{5, 5, 5, 5}
			q.header = http.Header{"Accept-Encoding": {"gzip"}}
			res, body := g.ask(&q)
			if res.StatusCode == http.StatusOK && res.Header.Get("Content-Encoding") == "" && q.tokensIn(body) != g.sim.Record(q.ID).Sent {
				t.Errorf("%s: %d tokens arrived, and %d were sent: %s", q.ID, q.tokensIn(body), g.sim.Record(q.ID).Sent, body)
			}
			if gzipped := res.Header.Get("Content-Encoding") == "gzip"; gzipped != (q.Gzip && !q.stream) {
				t.Errorf("%s: Content-Encoding %q", q.ID, res.Header.Get("Content-Encoding"))
			}
			g.wantCharge(q.ID, tt.charged)
		}
	}
}

// Usage is hidden from clients that did not ask for it, in the two formats that report it on request.
func TestFormats_HiddenUsage(t *testing.T) {
	g := start(t, "rules:"+each)
	for _, w := range wires[:2] {
		for _, asks := range []bool{true, false} {
			q := &question{wire: w, stream: true, prompt: 10, most: 100, asks: asks, Plan: provider.Plan{ID: w.name + "-asks"}}
			if !asks {
				q.ID = w.name + "-asks-not"
			}
			_, body := g.ask(q)
			if strings.Contains(body, `"usage"`) != asks || !strings.HasSuffix(body, "data: [DONE]\n\n") {
				t.Errorf("%s: %s", q.ID, body)
			}
			if !strings.Contains(g.sim.Record(q.ID).Body, `"include_usage":true`) {
				t.Errorf("%s: the provider got %s", q.ID, g.sim.Record(q.ID).Body)
			}
			g.wantCharge(q.ID, 30)
		}
	}
}

// A server that rejects stream_options gets the client's body. The tokens are then an estimate of the text.
func TestFormats_AskUsage(t *testing.T) {
	const never = "rules:" + each + "    streaming: { ask_usage: false }\n"
	for _, w := range wires[:2] {
		q := &question{wire: w, stream: true, prompt: 10, most: 100, Plan: provider.Plan{ID: w.name + "-strict", Strict: true, Reasoning: 7}}
		if res, body := start(t, "rules:"+each).ask(q); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: with the default, the server answers %d: %s", q.ID, res.StatusCode, body)
		}
		g := start(t, never)
		res, body := g.ask(q)
		if res.StatusCode != http.StatusOK || strings.Contains(body, `"usage"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
			t.Errorf("%s: status %d, %s", q.ID, res.StatusCode, body)
		}
		if got := g.sim.Record(q.ID).Body; strings.Contains(got, "stream_options") {
			t.Errorf("%s: the provider got %s", q.ID, got)
		}
		g.wantCharge(q.ID, 30) // without the reasoning, which only usage has

		asking := *q
		asking.ID, asking.asks, asking.Strict = w.name+"-asking", true, false
		if _, body := g.ask(&asking); !strings.Contains(body, `"usage"`) {
			t.Errorf("%s: a client that asks for usage got %s", asking.ID, body)
		}
		g.wantCharge(asking.ID, 37)
	}
}
