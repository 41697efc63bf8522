// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A provider reports hidden reasoning only in the last event of an answer. After a client has hung up, the answer is therefore
// read to its end: see [readOn]. These bounds keep the costs of such clients finite.
const (
	// readOnTime is the default timeout of the SDKs of OpenAI and Anthropic: a client that stays waits no longer.
	readOnTime = 10 * time.Minute

	// readOnBytes is twice the stream of an answer of 128,000 tokens, with 250 bytes for each.
	readOnBytes = 64 << 20

	// readOnCalls bounds the memory: a connection and a copy buffer for each call, 100 MB for all.
	readOnCalls = 1024

	// settleTime is how long a shutdown waits for the settlements of the calls that it ends.
	settleTime = time.Second
)

var (
	// errUsageKnown ends the work for a client that is gone.
	errUsageKnown = errors.New("httplimit: the client is gone, and the usage of its call is known")

	// errReadOnEnds ends the work for a client that is gone before the usage of its call is known.
	errReadOnEnds = errors.New("httplimit: the client is gone, and the bounds for the rest of the response are reached")
)

// readOns are the calls of clients that are gone.
type readOns struct {
	time  time.Duration
	bytes int64
	calls int

	mu     sync.Mutex
	open   map[*readOn]struct{}
	closed bool
	none   chan struct{} // closed when the last call has ended after closed
}

func newReadOns() *readOns {
	return &readOns{time: readOnTime, bytes: readOnBytes, calls: readOnCalls, open: map[*readOn]struct{}{}, none: make(chan struct{})}
}

func (s *readOns) add(r *readOn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= s.calls {
		return false
	}
	s.open[r] = struct{}{}
	return true
}

func (s *readOns) remove(r *readOn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.open[r]; !there {
		return
	}
	if delete(s.open, r); s.closed && len(s.open) == 0 {
		close(s.none)
	}
}

// drain waits until ctx ends for the calls to end. It then ends them itself, and waits for their settlements.
func (s *readOns) drain(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		if len(s.open) == 0 {
			close(s.none)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.none:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for r := range s.open {
		r.cancel(errReadOnEnds)
	}
	s.mu.Unlock()
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-s.none:
	case <-timer.C:
	}
}

// A readOn keeps a call to a model alive after its client is gone, until its usage is known or the bounds are reached. Its
// context does not end with the client's. A nil readOn does nothing.
type readOn struct {
	of      *readOns
	ctx     context.Context // of the work for the client
	cancel  context.CancelCauseFunc
	unwatch func() bool
	away    chan struct{} // closed when the client is gone

	mu    sync.Mutex // guards the fields below
	gone  bool
	known bool // the usage
	ended bool
	left  int64 // bytes that may be read after the client is gone
	timer *time.Timer
}

// watch returns the readOn of a call of a client whose context is client.
func (s *readOns) watch(client context.Context) *readOn {
	r := &readOn{of: s, away: make(chan struct{}), left: s.bytes}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(client))
	r.unwatch = context.AfterFunc(client, r.leave)
	return r
}

// watchCancel replaces the Cancel channel of an outgoing request, which an [http.Client] with a Timeout sets.
func (r *readOn) watchCancel(out *http.Request) {
	//lint:ignore SA1019 [http.Client] still uses it.
	canceled := out.Cancel
	if canceled == nil {
		return
	}
	out.Cancel = nil //lint:ignore SA1019 as above
	go func() {
		select {
		case <-canceled:
			r.leave()
		case <-r.ctx.Done():
		}
	}()
}

// leave notes that the client is gone.
func (r *readOn) leave() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone || r.ended {
		return
	}
	r.gone = true
	close(r.away)
	switch {
	case r.known:
		r.cancel(errUsageKnown)
	case !r.of.add(r):
		r.cancel(errReadOnEnds)
	default:
		r.timer = time.AfterFunc(r.of.time, func() { r.cancel(errReadOnEnds) })
	}
}

// isGone reports whether no client receives the response.
func (r *readOn) isGone() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// survives reports whether an error of the client's connection does not end the work.
func (r *readOn) survives(err error) bool {
	if r == nil || errors.Is(err, http.ErrNotSupported) || errors.Is(err, http.ErrBodyNotAllowed) || errors.Is(err, http.ErrContentLength) {
		return false // an error of the handler
	}
	r.leave()
	return true
}

// count counts the next bytes of the response. It returns an error if the client is gone and nothing needs the rest.
func (r *readOn) count(n int, known bool) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = r.known || known
	if !r.gone {
		return nil
	}
	r.left -= int64(n)
	switch {
	case r.known:
		return errUsageKnown
	case r.left < 0:
		r.cancel(errReadOnEnds)
		return errReadOnEnds
	}
	return nil
}

// isCut reports whether the bounds have ended the response.
func (r *readOn) isCut() bool {
	return r != nil && errors.Is(context.Cause(r.ctx), errReadOnEnds)
}

// end frees everything after the settlement.
func (r *readOn) end() {
	if r == nil {
		return
	}
	r.unwatch()
	r.mu.Lock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.of.remove(r)
	r.cancel(nil)
}
