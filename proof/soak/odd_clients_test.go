// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
)

const (
	crowdSize = 20       // requests in a batch
	echoBytes = 64 << 10 // of a body that is sent through the gateway and back
)

// crowd asks for many that were never seen before, and never again: all are
// admitted.
func (w *world) crowd(ctx context.Context) {
	every(ctx, 500*time.Millisecond, func() {
		var batch struct {
			Requests []map[string]any `json:"requests"`
		}
		for range crowdSize {
			batch.Requests = append(batch.Requests, map[string]any{"attributes": map[string]string{"header:x-steady": "crowd-" + rand.Text()}})
		}
		body, err := json.Marshal(batch)
		if err != nil {
			w.wrongs.add("crowd: %v", err)
			return
		}
		a := w.ask(http.MethodPost, w.api.URL+"/v1/take", map[string]string{"Content-Type": "application/json"}, body)
		if w.open("crowd", a) != admitted {
			return
		}
		var answers struct {
			Responses []api.Decision `json:"responses"`
		}
		if err := json.Unmarshal(a.body, &answers); err != nil || len(answers.Responses) != crowdSize {
			w.wrongs.add("crowd: %d answers, %v: %.300s", len(answers.Responses), err, a.body)
			return
		}
		for _, d := range answers.Responses {
			if !d.Allowed && !w.outages.during(a.span) {
				w.wrongs.add("crowd: a newcomer was denied: %+v", d)
			}
		}
		w.tally.batched.Add(crowdSize)
	})
}

// fickle leaves before it is answered.
func (w *world) fickle(ctx context.Context) {
	every(ctx, 200*time.Millisecond, func() {
		asking, cancel := context.WithTimeout(ctx, upstreamDelay/4)
		defer cancel()
		a := w.askWithin(asking, http.MethodGet, w.gateway.URL+"/slow", nil, nil)
		switch {
		case errors.Is(a.err, context.DeadlineExceeded), errors.Is(a.err, context.Canceled):
			w.tally.left.Add(1)
		case a.err != nil:
			w.open("fickle", a)
		case a.status != http.StatusOK:
			w.wrongs.add("fickle: status %d: %.300s", a.status, a.body)
		}
	})
}

// echoer sends bodies there and back, under no limit.
func (w *world) echoer(ctx context.Context) {
	body := make([]byte, echoBytes)
	rand.Read(body)
	every(ctx, 250*time.Millisecond, func() {
		a := w.ask(http.MethodPost, w.gateway.URL+"/echo", nil, body)
		if w.open("echoer", a) != admitted {
			return
		}
		if !bytes.Equal(a.body, body) {
			w.wrongs.add("echoer: %d bytes came back that are not the %d that were sent", len(a.body), len(body))
		}
		w.tally.echoed.Add(1)
	})
}

// operator blocks somebody and lets them go again, by the admin API.
func (w *world) operator(ctx context.Context) {
	var last answer
	is := func(want int) func() bool { // a status
		return func() bool {
			last, _ = w.take(w.api, map[string]string{"header:x-open": "blocked"})
			return last.status == want
		}
	}
	every(ctx, 3*time.Second, func() {
		began := now()
		id := fmt.Sprint("soak-", began)
		put := fmt.Sprintf(`{"id":%q,"action":"block","match":{"header:x-open":"blocked"},"reason":"soak","author":"operator","expires_at":%q}`,
			id, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		made := w.manage(http.MethodPut, "/v1/overrides", put)
		if made && !w.eventually(ctx, is(http.StatusTooManyRequests)) {
			w.doubt(began, "operator: a block does not block", last)
		}
		// A request without a response may still have created the override. Unless it is removed, it
		// survives a loss of the store: the servers write it back.
		end := func() bool {
			return w.manage(http.MethodDelete, "/v1/overrides/"+id+"?author=operator&reason=over", "")
		}
		if w.eventually(ctx, end) && !w.eventually(ctx, is(http.StatusOK)) {
			w.doubt(began, "operator: a block that was ended still blocks", last)
		}
		w.tally.overridden.Add(1)
	})
}

// manage sends a request to the admin API and reports whether it succeeded.
func (w *world) manage(method, path, body string) bool {
	a := w.ask(method, w.api.AdminURL+path, map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + w.api.token,
	}, []byte(body))
	done := a.err == nil && (a.status < 300 || method == http.MethodDelete && a.status == http.StatusNotFound)
	if !done && !w.outages.during(a.span) && !w.leaving.Load() {
		w.wrongs.add("operator: %s %s: status %d, %v: %.300s", method, path, a.status, a.err, a.body)
	}
	return done
}

// doubt adds a wrong, unless the store was down since then or everything ends.
func (w *world) doubt(since int64, text string, last answer) {
	if !w.leaving.Load() && !w.outages.during(span{since, now()}) {
		w.wrongs.add("%s: status %d after %d µs, %v: %.300s", text, last.status, last.end-last.begin, last.err, last.body)
	}
}
