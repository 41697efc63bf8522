// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
)

const (
	// maxPlays bounds the plays at the same time, and so does half of the processors. Others
	// wait: the server has other work.
	maxPlays = 2

	// playTimeout bounds the time of one play with its wait.
	playTimeout = 5 * time.Second
)

func placesToPlay() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxPlays) }

// servePlay serves /v1/play: it plays traffic in virtual time. The limiter has no part in it.
func (a *API) servePlay(w http.ResponseWriter, r *http.Request) *api.Problem {
	var in api.Play
	if p := a.readText(w, r, &in); p != nil {
		return p
	}
	ctx, cancel := context.WithTimeout(r.Context(), playTimeout)
	defer cancel()
	select {
	case a.plays <- struct{}{}:
	case <-ctx.Done():
		w.Header().Set("Retry-After", "1")
		return api.NewProblem(http.StatusServiceUnavailable, "others are playing; try again")
	}
	text, err := a.play(ctx, in)
	if found, ok := errors.AsType[playground.Mistakes](err); ok {
		p := api.NewProblem(http.StatusUnprocessableEntity, found[0].String())
		p.Mistakes = found
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("this took longer than %v; play less", playTimeout))
	}
	if err != nil {
		if r.Context().Err() == nil { // else the client is gone
			slog.ErrorContext(r.Context(), "httpapi: play failed", "err", err)
		}
		return api.NewProblem(http.StatusInternalServerError, "the server failed; its log has the error")
	}
	buf := buffer{out: text}
	buf.serve(w, http.StatusOK)
	return nil
}

// play plays, and then gives up the place: a slow reader of the answer does not keep it.
func (a *API) play(ctx context.Context, in api.Play) (text []byte, err error) {
	defer func() { <-a.plays }()
	result, err := playground.Play(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// servePresets serves /v1/play/presets: examples, and the bounds of a play.
func (a *API) servePresets(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parameters(r); p != nil {
		return p
	}
	return serveJSON(w, api.PlayPresets{
		Presets: playground.Presets(), Algorithms: playground.Algorithms, Shapes: playground.Shapes,
		Bounds: api.PlayBounds{
			Lanes: playground.MaxLanes, Phases: playground.MaxPhases, Requests: playground.MaxRequests,
			Seconds: playground.MaxSeconds, Hand: playground.MaxHand, Body: maxTextBytes,
		},
	})
}
