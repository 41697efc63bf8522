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

// maxHealthBytes bounds how much of a health check response is read, so that its connection can be reused.
const maxHealthBytes = 64 << 10

// Watch runs the health checks of all upstreams until ctx ends. It checks each server once at the start.
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

func (s *server) watch(ctx context.Context, h Health) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	row := 0 // consecutive checks that contradict the current state
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
		sick := s.unhealthy.Load()
		switch need := h.Down; {
		case sick == (err != nil):
			row = 0
		default:
			if sick {
				need = h.Up
			}
			if row++; row >= need {
				s.setUnhealthy(!sick, err)
				row = 0
			}
		}
		timer.Reset(jitter(h.Interval))
	}
}

// jitter returns d plus or minus up to 10%, so that proxies that start together do not stay in step.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}

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
	s.markReachable()
	_, _ = io.CopyN(io.Discard, res.Body, maxHealthBytes)
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
