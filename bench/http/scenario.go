// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/metehq/mete/bench/contest"
)

// The names of those compared.
const (
	mete  = "mete serve"
	plain = "bare net/http"
	proxy = "bare ReverseProxy"
	nginx = "nginx alone"
	asks  = "nginx that asks mete"
	asks1 = "nginx that asks mete with GOMAXPROCS=1"
)

// batchTakes is how many takes are in a batch.
const batchTakes = 100

// events returns what is measured. A take of proxies and gateways is a request.
func (s *stage) events() []contest.Event {
	one := request{method: "POST", path: "/v1/take", body: takeBody}
	batch := request{method: "POST", path: "/v1/take", body: batchBody(batchTakes)}
	get := request{method: "GET", path: "/a"}
	paced := request{method: "GET", path: "/a", paced: true}
	gateways := func(r request) []contest.Entrant {
		return []contest.Entrant{
			s.entrant(asks, r, 1, s.asking("asking")),
			s.entrant(asks1, r, 1, s.asking("asking1", "GOMAXPROCS=1")),
			s.entrant(nginx, r, 1, s.alone),
		}
	}
	return []contest.Event{
		event("take", "Decision API: one take in JSON",
			s.entrant(mete, one, 1, s.api), s.entrant(plain, one, 1, s.constant(one))),
		event("batch", "Decision API: batches of 100 takes in JSON",
			s.entrant(mete, batch, batchTakes, s.api), s.entrant(plain, batch, batchTakes, s.constant(batch))),
		event("proxy", "Reverse proxy in front of nginx, which answers 1 KiB",
			s.entrant(mete, get, 1, s.gate), s.entrant(proxy, get, 1, s.bareGate)),
		event("gateway", "nginx in front of nginx, which asks /v1/decision by auth_request", gateways(get)...),
		event("paced", "The same where each connection pauses for 2 to 6 ms before each request", gateways(paced)...),
	}
}

func event(name, title string, entrants ...contest.Entrant) contest.Event {
	return contest.Event{Scenario: contest.Scenario{Name: name, Title: title, Keys: 1, Calls: 1}, Entrants: entrants}
}

// entrant sends a request of so many takes, again and again, to what start starts.
func (s *stage) entrant(name string, r request, takes int, start func(context.Context) (*server, error)) contest.Entrant {
	return contest.Entrant{Name: name, Turn: func(ctx context.Context, task contest.Task) (contest.Sample, error) {
		srv, err := start(ctx)
		if err != nil {
			return contest.Sample{}, err
		}
		if !srv.warm {
			if _, err := s.load(ctx, srv.url, r, task.Callers, time.Second); err != nil {
				return contest.Sample{}, err
			}
			srv.warm = true
		}
		before := srv.cpu()
		got, err := s.load(ctx, srv.url, r, task.Callers, task.Time)
		if err != nil {
			return contest.Sample{}, err
		}
		n := got.requests * int64(takes)
		return contest.Sample{
			Takes: float64(n) / got.elapsed.Seconds(),
			P50:   got.p50, P99: got.p99,
			CPU: (srv.cpu() - before) / time.Duration(n),
		}, nil
	}}
}
