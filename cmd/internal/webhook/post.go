// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxAttempts bounds the requests for one batch.
	maxAttempts = 10

	// firstWait is the wait after the first failure. It doubles up to mostWait with each failure, and a random
	// part of up to the same length is added.
	firstWait = time.Second
	mostWait  = time.Minute

	// maxAnswerBytes bounds the response bytes that are read for connection reuse.
	maxAnswerBytes = 4 << 10
)

func randomPart() float64 { return mathrand.Float64() }

// newClient returns a client that does not follow redirects, because batches are for the configured address only.
func newClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: requestTimeout}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func newBatch(lines [][]byte) *batch { return &batch{rand.Text(), lines} }

// errRefused is the error of a response that a retry would not change.
var errRefused = errors.New("the endpoint rejects the batch")

// post sends a batch, with retries, until the endpoint accepts it or the batch is lost. It returns false if ctx
// ends first.
func (s *Sender) post(ctx context.Context, b *batch) bool {
	body := bytes.Join(b.lines, nil)
	for attempt := 1; ; attempt++ {
		wait, err := s.send(ctx, b.id, body)
		switch {
		case err == nil:
			s.count(func(st *Stats) { st.Sent += uint64(len(b.lines)) })
			if attempt > 1 {
				s.config.Log.Info("denial webhook recovered", "attempts", attempt)
			}
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errRefused) || attempt == maxAttempts:
			s.count(func(st *Stats) { st.Failed += uint64(len(b.lines)) })
			s.config.Log.Error("denial webhook failed, lines lost", "lines", len(b.lines), "attempts", attempt, "err", err)
			return true
		case attempt == 1:
			s.config.Log.Warn("denial webhook failed, retrying", "err", err)
		}
		timer := time.NewTimer(max(wait, s.backoff(attempt)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func (s *Sender) backoff(attempt int) time.Duration {
	wait := min(firstWait<<(attempt-1), mostWait)
	return wait + time.Duration(s.random()*float64(wait))
}

// send sends one request. It returns the Retry-After of the response.
func (s *Sender) send(ctx context.Context, id string, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.config.URL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: cannot create the request", errRefused)
	}
	for name, value := range s.config.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Idempotency-Key", id)
	r.Header.Set("User-Agent", "mete")
	if len(s.config.Secret) > 0 {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		r.Header.Set("X-Mete-Timestamp", at)
		r.Header.Set("X-Mete-Signature", Sign(s.config.Secret, at, body))
	}
	answer, err := s.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL may contain a token
		}
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswerBytes)
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 if it is a date
		return min(max(time.Duration(seconds)*time.Second, 0), mostWait), fmt.Errorf("the endpoint answers with status %d", code)
	default:
		return 0, fmt.Errorf("%w: status %d", errRefused, code)
	}
}

func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(timestamp + ".")) // never fails
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
