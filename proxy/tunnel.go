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

// A tunnel is an upgraded connection: what each side says goes to the other.
type tunnel struct {
	began time.Time
	moved atomic.Int64  // when something last went through, in nanoseconds after began
	cut   chan struct{} // closed to end it
}

func newTunnel() *tunnel { return &tunnel{began: time.Now(), cut: make(chan struct{})} }

// watch calls closeBoth where ctx ends, the tunnel is cut, or nothing goes through it
// for as long as idle, if that is above 0. It returns then, or once done is closed.
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
			silent := time.Since(t.began) - time.Duration(t.moved.Load())
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

var errHalfClose = errors.New("cannot be closed in one direction")

// pour copies until from ends, and says so to whoever reads to. What a slow reader has
// not taken yet holds up what comes after it, and is no movement.
func (t *tunnel) pour(to io.Writer, from io.Reader, space []byte) error {
	for {
		n, err := from.Read(space)
		if n > 0 {
			t.note()
			if _, err := to.Write(space[:n]); err != nil {
				return err
			}
			t.note()
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

// note remembers that something has gone through. That is one reading of the clock
// beside a system call; the timer is set anew only when it has run out.
func (t *tunnel) note() { t.moved.Store(int64(time.Since(t.began))) }

// tunnels are those that are open. The zero value is none.
type tunnels struct {
	mu   sync.Mutex
	open map[*tunnel]struct{}
	none chan struct{} // nil until no more are opened; closed when the last has ended
}

// enter adds t. It is false where no more are opened.
func (ts *tunnels) enter(t *tunnel) bool {
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

// leave removes t, which has ended.
func (ts *tunnels) leave(t *tunnel) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, there := ts.open[t]; !there {
		return // it was cut
	}
	delete(ts.open, t)
	if ts.none != nil && len(ts.open) == 0 {
		close(ts.none)
	}
}

// refuse has no more be opened. What it returns is closed when none is left.
func (ts *tunnels) refuse() <-chan struct{} {
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

// cutAll ends those that are left, after refuse, and returns how many they were.
func (ts *tunnels) cutAll() int {
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

// Drain waits until no upgraded connection is left or ctx ends, has those that remain
// closed, on both sides, and returns how many they were. An [net/http.Server] does not
// wait for them when it is shut down: call Drain after its Shutdown. No connection is upgraded any
// more once Drain is called: who asks for that is answered with 503. Everything else
// the proxy goes on to do.
func (p *Proxy) Drain(ctx context.Context) int {
	select {
	case <-p.tunnels.refuse():
		return 0
	case <-ctx.Done():
		return p.tunnels.cutAll()
	}
}
