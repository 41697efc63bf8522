// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"net"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/overrides"
)

const boardPath = "/dashboard/"

// A board provides the data of the dashboard.
type board struct {
	server    *Server
	buckets   *buckets
	source    source
	overrides *overrides.Manager
	instance  string
}

func newBoard(s *Server, b *buckets, source source, m *overrides.Manager) *board {
	return &board{s, b, source, m, rand.Text()}
}

func (b *board) Totals() monitor.Totals { return b.server.metrics.Totals() }

func (b *board) State() api.ServerState {
	ending := b.server.ending.Load()
	s := api.ServerState{
		Instance: b.instance, Version: buildinfo.Read().Version, Started: b.server.reloads.started, Ready: !ending, Ending: ending,
		Policy: b.policyState(), Store: b.buckets.state(), Overrides: map[string]int{},
	}
	for action, n := range b.overrides.CountActive() {
		s.Overrides[string(action)] = n
	}
	return s
}

func (b *board) policyState() api.PolicyState {
	r := b.server.reloads.stats()
	p := api.PolicyState{Source: b.source.name(), Loaded: &r.At, Reloads: r.Applied, Refused: r.Failed, Failing: r.Failing, Bundle: bundleOf(b.source)}
	if f := b.server.reloads.failure.Load(); f != nil && r.Failing {
		p.Failed, p.Errors = &f.at, f.mistakes
	}
	return p
}

// signInHint describes where the operator finds a token.
func signInHint(tokenFile string) string {
	if tokenFile != "" {
		return "The server generated a token at the start. On its machine, 'mete dashboard' signs in, and cat " + tokenFile + " shows it."
	}
	return "Tokens are in the server's settings: admin_tokens."
}

func baseURL(files config.TLS, address net.Addr) string {
	if files.On() {
		return "https://" + address.String()
	}
	return "http://" + address.String()
}
