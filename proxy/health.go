// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// maxHealthBytes is how much of an answer to a health check is read, to use its
// connection again.
const maxHealthBytes = 64 << 10

// Watch runs the health checks of all upstreams until ctx ends. The first of each
// server is at once.
func (p *Proxy) Watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, u := range p.upstreams {
		if u.health.Path == "" {
			continue
		}
		for _, s := range u.servers {
			watching.Go(func() { s.watch(ctx, u.health) })
		}
	}
}

// watch checks s until ctx ends.
func (s *server) watch(ctx context.Context, h Health) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	row := 0 // checks in a row that say the other thing than what s is taken for
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := s.check(ctx, h)
		if ctx.Err() != nil {
			return
		}
		sick := s.sick.Load()
		switch need := h.Down; {
		case sick == (err != nil):
			row = 0
		default:
			if sick {
				need = h.Up
			}
			if row++; row >= need {
				s.setSick(!sick, err)
				row = 0
			}
		}
		timer.Reset(vary(h.Interval))
	}
}

// vary returns d, give or take a tenth of it: many proxies that begin together do not
// stay together.
func vary(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}

// check asks s how it is.
func (s *server) check(ctx context.Context, h Health) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	target := fmt.Sprintf("%s://%s%s%s", s.scheme, s.url.Host, s.baseRaw, h.Path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "mete-health")
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	s.reached()
	_, _ = io.CopyN(io.Discard, res.Body, maxHealthBytes)
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
