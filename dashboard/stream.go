// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"time"
)

// serveStream tells how things are, and what happens each second, until who asked is
// gone.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, _ Viewer) error {
	s, release, err := h.openStream(w, r)
	if err != nil {
		return err
	}
	defer release()
	if r.Method == http.MethodHead {
		return nil
	}
	l, first := h.hub.listen(r.Header.Get("Last-Event-Id"))
	defer h.hub.leave(l)
	for err = s.send(first...); err == nil; {
		select {
		case f, ok := <-l.frames:
			if !ok { // too slow
				return nil
			}
			err = s.send(f)
		case <-s.gone:
			return nil
		case <-s.ending:
			_ = s.send(byeFrame) // it may be gone as well
			return nil
		}
	}
	return nil // an answer that has begun: nobody can be told
}

// Traffic is what rules did lately: of each that did anything how much it allowed,
// denied, would have denied, let through near its limit, and decided without the store.
type Traffic struct {
	Window float64              `json:"window"` // in seconds
	Rules  map[string][5]uint64 `json:"rules"`
}

func (h *Handler) serveTraffic(w http.ResponseWriter, r *http.Request, _ Viewer) error {
	window := TrafficWindow
	if text := r.URL.Query().Get("window"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < interval || d > TrafficWindow {
			return refuse(http.StatusBadRequest, "window says how much time the answer is about; send a duration from %v to %v, such as 10s", interval, TrafficWindow)
		}
		window = d.Truncate(interval)
	}
	return answerJSON(w, Traffic{window.Seconds(), h.hub.sums(window)})
}
