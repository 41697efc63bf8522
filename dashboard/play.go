// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/metehq/mete/internal/playground"
	"github.com/metehq/mete/internal/ratelimitfields"
)

const (
	// maxPlays bounds what is played in the playground at the same time, and so does
	// half of the processors. Others wait: the server has something else to do.
	maxPlays = 2

	// playTimeout bounds how long one play may take, waiting included.
	playTimeout = 5 * time.Second
)

func placesToPlay() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxPlays) }

// playMistakes is an answer that says what cannot be played.
type playMistakes struct {
	problem
	Mistakes playground.Mistakes `json:"mistakes"`
}

// servePlay plays what is sent in virtual time. It has no part in what the limiter does.
func (h *Handler) servePlay(w http.ResponseWriter, r *http.Request, _ Viewer) error {
	var in playground.Input
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), playTimeout)
	defer cancel()
	select {
	case h.plays <- struct{}{}:
	case <-ctx.Done():
		w.Header().Set("Retry-After", "1")
		return refuse(http.StatusServiceUnavailable, "others are playing; try again")
	}
	text, err := h.played(ctx, in)
	if found, ok := errors.AsType[playground.Mistakes](err); ok {
		p := refuse(http.StatusUnprocessableEntity, "%s", found[0])
		p.Field = found[0].Field
		ratelimitfields.WriteProblem(w, r, p.Status, playMistakes{*p, found})
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return refuse(http.StatusServiceUnavailable, "this took longer than %v; play less", playTimeout)
	}
	if err != nil {
		return err
	}
	writeJSON(w, text)
	return nil
}

// played plays, and then gives up the place: who reads the answer slowly does not keep it.
func (h *Handler) played(ctx context.Context, in playground.Input) (text []byte, err error) {
	defer func() { <-h.plays }()
	result, err := playground.Play(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// servePresets answers with what there is to begin with, and how much can be played.
func (h *Handler) servePresets(w http.ResponseWriter, _ *http.Request, _ Viewer) error {
	return answerJSON(w, presets{
		Presets: playground.Presets(), Algorithms: playground.Algorithms, Shapes: playground.Shapes,
		Bounds: playBounds{playground.MaxLanes, playground.MaxPhases, playground.MaxRequests, playground.MaxSeconds, playground.MaxHand, MaxBodyBytes},
	})
}

type presets struct {
	Presets    []playground.Preset `json:"presets"`
	Algorithms []string            `json:"algorithms"`
	Shapes     []string            `json:"shapes"`
	Bounds     playBounds          `json:"bounds"`
}

type playBounds struct {
	Lanes    int `json:"lanes"`
	Phases   int `json:"phases"`
	Requests int `json:"requests"`
	Seconds  int `json:"seconds"`
	Hand     int `json:"hand"`
	Body     int `json:"body"`
}
