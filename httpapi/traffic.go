// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/monitor"
)

// MaxStreams bounds the open streams of all callers. A page uses one, plus one for a watched bucket.
const MaxStreams = 200

func (a *API) serveTraffic(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "window")
	if p != nil {
		return p
	}
	window := monitor.TrafficWindow
	if text := query.Get("window"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < monitor.Interval || d > monitor.TrafficWindow {
			return api.NewProblem(http.StatusBadRequest, fmt.Sprintf("window is the time range; send a duration from %v to %v, such as 10s", monitor.Interval, monitor.TrafficWindow))
		}
		window = d.Truncate(monitor.Interval)
	}
	return serveJSON(w, a.live.Monitor.Traffic(window))
}

// serveTrafficStream streams the state of the server and the counts of each second.
func (a *API) serveTrafficStream(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parseQuery(r); p != nil {
		return p
	}
	s, release, err := a.streams.Open(w, r)
	if err != nil {
		return streamProblem(w, err)
	}
	defer release()
	if r.Method == http.MethodHead {
		return nil
	}
	l, first := a.live.Monitor.Listen(r.Header.Get("Last-Event-Id"))
	defer a.live.Monitor.RemoveListener(l)
	for err = s.Send(first...); err == nil; {
		select {
		case f, ok := <-l.Frames:
			if !ok { // the client is too slow
				return nil
			}
			err = s.Send(f)
		case <-s.Gone:
			return nil
		case <-s.Ending:
			_ = s.Send(sse.Bye) // the client may be gone as well
			return nil
		}
	}
	return nil // the response has begun
}

func streamProblem(w http.ResponseWriter, err error) *api.Problem {
	if errors.Is(err, sse.ErrEnding) {
		return api.NewProblem(http.StatusServiceUnavailable, "the server is stopping")
	}
	w.Header().Set("Retry-After", "5")
	return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("too many open streams (%d); close a page or try again later", MaxStreams))
}
