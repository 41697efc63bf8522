// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const (
	// watchInterval is the time between two looks at a bucket that is watched, and
	// batchInterval that between two lists of decisions about it.
	watchInterval = 500 * time.Millisecond
	batchInterval = 200 * time.Millisecond
)

// serveWatch tells what is in one bucket, and what is decided about it, until who
// asked is gone.
func (h *Handler) serveWatch(w http.ResponseWriter, r *http.Request, _ Viewer) error {
	key, err := h.keyToWatch(r)
	if err != nil {
		return err
	}
	seen := newDecisions()
	stop, err := h.config.Watches.Watch(key, seen.add)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, "%d buckets are watched, and more may not be; close a page, or try again later", MaxWatches)
	}
	defer stop()
	s, release, err := h.openStream(w, r)
	if err != nil {
		return err
	}
	defer release()
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	looks := make(chan []byte)
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		h.look(ctx, key, looks)
	}()
	_ = s.follow(looks, seen) // an answer that has begun: nobody can be told
	return nil
}

// keyToWatch is the true key that a request names, with its tag. The store is not asked:
// nobody waits for that before the stream counts.
func (h *Handler) keyToWatch(r *http.Request) (key string, err error) {
	if key = r.URL.Query().Get("key"); key == "" {
		return "", refuse(http.StatusBadRequest, "the key is missing; say whose bucket is to be watched")
	}
	if strings.Contains(key, ":~") { // which is in masked ones alone
		known, ok := "", false
		if h.config.Key != nil {
			known, ok = h.config.Key(r.Context(), key)
		}
		if !ok {
			return "", refuse(http.StatusNotFound, "whose key is masked like this is not known here, or not any more")
		}
		key = known
	}
	m := h.config.Limiter.Policy()
	if m == nil {
		return "", refuse(http.StatusNotFound, "no bucket has this key: there is no policy")
	}
	found, _, err := m.Bucket(key, bucket.At(time.Now()))
	if unknown, ok := errors.AsType[*policy.KeyError](err); ok {
		return "", refuse(http.StatusNotFound, "%s", unknownKey(unknown))
	}
	return found.Key, err
}

// follow sends what a bucket is like and what is decided about it.
func (s *stream) follow(looks <-chan []byte, seen *decisions) error {
	batches := time.NewTicker(batchInterval)
	defer batches.Stop()
	for {
		var frame []byte
		select {
		case frame = <-looks:
		case <-batches.C:
			if frame = seen.frame(); frame == nil {
				continue
			}
		case <-s.gone:
			return nil
		case <-s.ending:
			return s.send(byeFrame)
		}
		if err := s.send(frame); err != nil {
			return err
		}
	}
}

// look looks at a bucket again and again, until ctx ends. A store that answers late
// does not hold up what is told of decisions.
func (h *Handler) look(ctx context.Context, key string, looks chan<- []byte) {
	again := time.NewTicker(watchInterval)
	defer again.Stop()
	for {
		frame, err := h.lookOnce(ctx, key)
		if err != nil {
			return
		}
		select {
		case looks <- frame:
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

// lookOnce is the frame of a bucket as it is now, or of why that is not known.
func (h *Handler) lookOnce(ctx context.Context, key string) ([]byte, error) {
	b, err := h.config.Limiter.Bucket(ctx, key)
	if err == nil {
		return frame("bucket", "", bucketEvent(&b, time.Now()))
	}
	// What a store says stays in the server: it may name hosts.
	detail := "the store does not answer; what is in the bucket is not known"
	if unknown, ok := errors.AsType[*policy.KeyError](err); ok {
		detail = unknownKey(unknown)
	}
	return frame("trouble", "", map[string]string{"detail": detail})
}

// unknownKey says why there is no such bucket.
func unknownKey(e *policy.KeyError) string {
	text := "no bucket has this key: " + e.Reason
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}
