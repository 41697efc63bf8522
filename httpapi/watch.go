// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

const (
	// lookInterval is the time between two looks at a watched bucket, and batchInterval the
	// time between two lists of its decisions.
	lookInterval  = 500 * time.Millisecond
	batchInterval = 200 * time.Millisecond
)

// serveWatch serves /v1/watch: the level of one bucket and the decisions about it, until the
// client is gone.
func (a *API) serveWatch(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parameters(r, "key")
	if p != nil {
		return p
	}
	_, _, byMask := policy.Key(query.Get("key")).CutMask()
	key, p := a.watchedKey(r.Context(), query.Get("key"))
	if p != nil {
		return p
	}
	seen := newCourse(time.Now)
	stop, err := a.live.Watches.Watch(key, seen.decide)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("%d buckets are watched already; close a page, or try again later", monitor.MaxWatches))
	}
	defer stop()
	s, release, err := a.streams.Open(w, r)
	if err != nil {
		return streamProblem(w, err)
	}
	defer release()
	if r.Method == http.MethodHead {
		return nil
	}
	show := func(b *mete.Bucket) api.Bucket {
		x := bucketOf(b)
		if !a.seesKeys(r) {
			a.maskBucket(&x, byMask)
		}
		return x
	}
	ctx, cancel := context.WithCancel(r.Context())
	looks := make(chan []byte)
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		a.look(ctx, key, seen, show, looks)
	}()
	_ = follow(s, looks, seen) // the answer has begun
	return nil
}

// watchedKey returns the true key of a bucket, with its tag. It does not ask the store:
// nobody waits for that before the stream counts.
func (a *API) watchedKey(ctx context.Context, asked string) (key string, p *api.Problem) {
	if key, p = a.trueKey(ctx, asked); p != nil {
		return "", p
	}
	m := a.lim.Policy()
	if m == nil {
		return "", api.NewProblem(http.StatusNotFound, "no bucket has this key: there is no policy")
	}
	found, _, err := m.Bucket(key, bucket.At(time.Now()))
	if err != nil {
		return "", bucketProblem(err, "")
	}
	return found.Key, nil
}

// follow sends what looks and decisions show of a bucket. It makes each event right before
// it sends it: an event that waited for a slow client would be older than the one before.
func follow(s *sse.Stream, looks <-chan []byte, seen *course) error {
	batches := time.NewTicker(batchInterval)
	defer batches.Stop()
	for {
		var frame []byte
		select {
		case frame = <-looks:
			if frame == nil {
				frame = seen.frame()
			}
		case <-batches.C:
			frame = seen.frame()
		case <-s.Gone:
			return nil
		case <-s.Ending:
			return s.Send(sse.Bye)
		}
		if frame == nil {
			continue
		}
		if err := s.Send(frame); err != nil {
			return err
		}
	}
}

// look looks at a bucket again and again, until ctx ends. A store that answers late does not
// hold up decisions.
func (a *API) look(ctx context.Context, key string, seen *course, show func(*mete.Bucket) api.Bucket, looks chan<- []byte) {
	again := time.NewTicker(lookInterval)
	defer again.Stop()
	for {
		select {
		case looks <- a.lookOnce(ctx, key, seen, show):
		case <-ctx.Done():
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookOnce notes a bucket as it is now. It returns nil, or the frame with the reason why the
// bucket is unknown.
func (a *API) lookOnce(ctx context.Context, key string, seen *course, show func(*mete.Bucket) api.Bucket) []byte {
	b, err := a.lim.Bucket(ctx, key)
	if err == nil {
		seen.look(&b, show(&b))
		return nil
	}
	seen.lose()
	// The error of a store stays in the server: it may name hosts.
	detail := "the store does not answer; what is in the bucket is not known"
	if _, ok := errors.AsType[*policy.KeyError](err); ok {
		detail = bucketProblem(err, "").Detail
	}
	frame, _ := sse.Frame("trouble", "", api.WatchTrouble{Detail: detail}) // text always marshals
	return frame
}
