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
	// maxPlays bounds concurrent plays, as does half the number of processors. Excess plays wait.
	maxPlays = 2

	// playTimeout bounds the time of one play, including its wait.
	playTimeout = 5 * time.Second
)

func playSlots() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxPlays) }

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
		return api.NewProblem(http.StatusServiceUnavailable, "too many plays are running; try again")
	}
	text, err := a.play(ctx, in)
	if found, ok := errors.AsType[playground.InputErrors](err); ok {
		p := api.NewProblem(http.StatusUnprocessableEntity, found[0].String())
		p.Mistakes = found
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("the play took longer than %v; reduce it", playTimeout))
	}
	if err != nil {
		if r.Context().Err() == nil { // else the client is gone
			slog.ErrorContext(r.Context(), "httpapi: play failed", "err", err)
		}
		return api.NewProblem(http.StatusInternalServerError, "internal error; see the server's log")
	}
	buf := buffer{out: text}
	buf.serve(w, http.StatusOK)
	return nil
}

// play runs a play and then frees its slot, so that a client that reads slowly does not hold it.
func (a *API) play(ctx context.Context, in api.Play) (text []byte, err error) {
	defer func() { <-a.plays }()
	result, err := playground.Play(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// servePresets serves /v1/play/presets: examples and the bounds of a play.
func (a *API) servePresets(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parseQuery(r); p != nil {
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
