// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

type tunnel struct {
	began       time.Time
	lastTraffic atomic.Int64  // time of the last traffic, in nanoseconds after began
	cut         chan struct{} // closed to end the tunnel
}

func newTunnel() *tunnel { return &tunnel{began: time.Now(), cut: make(chan struct{})} }

// watch calls closeBoth when ctx ends, when the tunnel is cut, or after idle without traffic if idle is positive.
// It then returns. It also returns when done is closed.
func (t *tunnel) watch(ctx context.Context, idle time.Duration, done <-chan struct{}, closeBoth func()) {
	var silence <-chan time.Time
	var timer *time.Timer
	if idle > 0 {
		timer = time.NewTimer(idle)
		defer timer.Stop()
		silence = timer.C
	}
	for {
		select {
		case <-done:
			return
		case <-silence:
			silent := time.Since(t.began) - time.Duration(t.lastTraffic.Load())
			if silent < idle {
				timer.Reset(idle - silent)
				continue
			}
		case <-ctx.Done():
		case <-t.cut:
		}
		closeBoth()
		return
	}
}

var errHalfClose = errors.New("connection cannot be closed in one direction")

// copyStream copies from until it ends, then closes the write side of to. Data that a slow reader has not taken
// yet blocks what follows and does not count as traffic.
func (t *tunnel) copyStream(to io.Writer, from io.Reader, space []byte) error {
	for {
		n, err := from.Read(space)
		if n > 0 {
			t.recordTraffic()
			if _, err := to.Write(space[:n]); err != nil {
				return err
			}
			t.recordTraffic()
		}
		switch {
		case err == io.EOF:
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				return half.CloseWrite()
			}
			return errHalfClose
		case err != nil:
			return err
		}
	}
}

// recordTraffic stores the time of the last traffic. This costs one clock reading per system call; the timer is
// reset only after it has fired.
func (t *tunnel) recordTraffic() { t.lastTraffic.Store(int64(time.Since(t.began))) }

// tunnels is the set of open tunnels. The zero value is empty.
type tunnels struct {
	mu   sync.Mutex
	open map[*tunnel]struct{}
	none chan struct{} // nil until stopNew; closed when the last tunnel has ended
}

func (ts *tunnels) add(t *tunnel) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.none != nil {
		return false
	}
	if ts.open == nil {
		ts.open = map[*tunnel]struct{}{}
	}
	ts.open[t] = struct{}{}
	return true
}

func (ts *tunnels) remove(t *tunnel) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, there := ts.open[t]; !there {
		return // closeAll has removed it
	}
	delete(ts.open, t)
	if ts.none != nil && len(ts.open) == 0 {
		close(ts.none)
	}
}

// stopNew forbids new tunnels. The returned channel is closed when no tunnel is left.
func (ts *tunnels) stopNew() <-chan struct{} {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.none == nil {
		ts.none = make(chan struct{})
		if len(ts.open) == 0 {
			close(ts.none)
		}
	}
	return ts.none
}

// closeAll ends the remaining tunnels, after stopNew, and returns their number.
func (ts *tunnels) closeAll() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	n := len(ts.open)
	if n == 0 {
		return 0
	}
	for t := range ts.open {
		close(t.cut)
	}
	clear(ts.open)
	close(ts.none)
	return n
}

// Drain waits until no upgraded connection is left or ctx ends. It then closes the remaining ones on both sides
// and returns their number. An [net/http.Server] does not wait for upgraded connections in Shutdown: call Drain
// after it. Drain does the same for calls to language models whose clients have hung up: see [httplimit.Middleware.Drain].
//
// After Drain is called, upgrade requests get a 503. All other requests work as before.
func (p *Proxy) Drain(ctx context.Context) int {
	defer p.limit.Drain(ctx)
	select {
	case <-p.tunnels.stopNew():
		return 0
	case <-ctx.Done():
		return p.tunnels.closeAll()
	}
}
