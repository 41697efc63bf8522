// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/metehq/mete/bench/contest"
)

// The names of the entrants.
const (
	mete  = "mete serve"
	plain = "bare net/http"
	proxy = "bare ReverseProxy"
	nginx = "nginx alone"
	asks  = "nginx that asks mete"
	asks1 = "nginx that asks mete with GOMAXPROCS=1"
)

const batchTakes = 100

// events returns the scenarios. A take of proxies and gateways is a request.
func (s *stage) events() []contest.Event {
	one := request{method: "POST", path: "/v1/take", body: takeBody}
	batch := request{method: "POST", path: "/v1/take", body: batchBody(batchTakes)}
	get := request{method: "GET", path: "/a"}
	paced := request{method: "GET", path: "/a", paced: true}
	gateways := func(r request) []contest.Entrant {
		return []contest.Entrant{
			s.newEntrant(asks, r, 1, s.startNginxAsking("asking")),
			s.newEntrant(asks1, r, 1, s.startNginxAsking("asking1", "GOMAXPROCS=1")),
			s.newEntrant(nginx, r, 1, s.startNginxAlone),
		}
	}
	return []contest.Event{
		event("take", "Decision API: one take in JSON",
			s.newEntrant(mete, one, 1, s.startAPI), s.newEntrant(plain, one, 1, s.constantAnswer(one))),
		event("batch", "Decision API: batches of 100 takes in JSON",
			s.newEntrant(mete, batch, batchTakes, s.startAPI), s.newEntrant(plain, batch, batchTakes, s.constantAnswer(batch))),
		event("proxy", "Reverse proxy in front of nginx, which answers 1 KiB",
			s.newEntrant(mete, get, 1, s.startGateway), s.newEntrant(proxy, get, 1, s.startBareProxy)),
		event("gateway", "nginx in front of nginx, which asks /v1/decision by auth_request", gateways(get)...),
		event("paced", "The same where each connection pauses for 2 to 6 ms before each request", gateways(paced)...),
	}
}

func event(name, title string, entrants ...contest.Entrant) contest.Event {
	return contest.Event{Scenario: contest.Scenario{Name: name, Title: title, Keys: 1, Calls: 1}, Entrants: entrants}
}

// newEntrant sends a request of the given number of takes repeatedly to the server that start returns.
func (s *stage) newEntrant(name string, r request, takes int, start func(context.Context) (*server, error)) contest.Entrant {
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
