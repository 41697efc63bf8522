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
	// pollInterval is the time between reads of a watched bucket, batchInterval between events with decisions.
	pollInterval  = 500 * time.Millisecond
	batchInterval = 200 * time.Millisecond
)

// serveWatch serves /v1/watch: the level of one bucket and its decisions, until the client disconnects.
func (a *API) serveWatch(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "key")
	if p != nil {
		return p
	}
	_, _, byMask := policy.Key(query.Get("key")).CutMask()
	key, p := a.watchedKey(r.Context(), query.Get("key"))
	if p != nil {
		return p
	}
	seen := newWatchLog(time.Now)
	stop, err := a.live.Watches.Watch(key, seen.addDecision)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("too many watched buckets (%d); close a page or try again later", monitor.MaxWatches))
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
	show := func(b *mete.BucketState) api.Bucket {
		x := bucketOf(b)
		if !a.canSeeKeys(r) {
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
		a.pollBucket(ctx, key, seen, show, looks)
	}()
	_ = sendEvents(s, looks, seen) // the response has begun
	return nil
}

// watchedKey returns the true key of a bucket with its tag. It does not query the store, which could block.
func (a *API) watchedKey(ctx context.Context, asked string) (key string, p *api.Problem) {
	if key, p = a.resolveKey(ctx, asked); p != nil {
		return "", p
	}
	m := a.lim.Policy()
	if m == nil {
		return "", api.NewProblem(http.StatusNotFound, "no bucket has this key: no policy is loaded")
	}
	found, _, err := m.Bucket(key, bucket.At(time.Now()))
	if err != nil {
		return "", bucketProblem(err, "")
	}
	return found.Key, nil
}

// sendEvents sends the polled levels and the decisions of a bucket. It creates each event right before sending
// it, so that a slow client gets no outdated events.
func sendEvents(s *sse.Stream, looks <-chan []byte, seen *watchLog) error {
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

// pollBucket reads a bucket repeatedly until ctx ends. A slow store does not delay the decisions.
func (a *API) pollBucket(ctx context.Context, key string, seen *watchLog, show func(*mete.BucketState) api.Bucket, looks chan<- []byte) {
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		select {
		case looks <- a.pollOnce(ctx, key, seen, show):
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

// pollOnce reads the bucket once. It returns nil, or an event with the reason why the level is unknown.
func (a *API) pollOnce(ctx context.Context, key string, seen *watchLog, show func(*mete.BucketState) api.Bucket) []byte {
	b, err := a.lim.Bucket(ctx, key)
	if err == nil {
		seen.addBucket(&b, show(&b))
		return nil
	}
	seen.invalidate()
	// The error of a store may contain host names, so it is not sent.
	detail := "the store is unavailable, so the level of the bucket is unknown"
	if _, ok := errors.AsType[*policy.KeyError](err); ok {
		detail = bucketProblem(err, "").Detail
	}
	frame, _ := sse.Frame("trouble", "", api.WatchTrouble{Detail: detail}) // text always marshals
	return frame
}
