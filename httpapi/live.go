// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"maps"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

const (
	trafficPath = "/v1/traffic"
	streamPath  = "/v1/traffic/stream"
)

// Live has the sources of the endpoints that show a limiter at work, for the pages of
// package dashboard and for others. All of them are optional.
type Live struct {
	// Monitor serves /v1/traffic and its stream, which answer 404 without it.
	Monitor *monitor.Monitor

	// Watches pass the decisions about a bucket to /v1/watch. Without them it shows levels
	// only.
	Watches *monitor.Watches

	// Violations serve /v1/violations, which answers 404 without them.
	Violations Violations

	// Name returns the name of the caller for /v1/me. It must be safe for concurrent use.
	Name func(*http.Request) string

	// SignIn tells callers without a token where one comes from, in sentences.
	SignIn string

	// Try are commands that send the limiter requests. A page shows them until something
	// has happened.
	Try []string

	// ReadCurl, if set, reads curl command lines for /v1/request. Without it, the endpoint
	// reads only the text of HTTP requests, and attributes. It must be safe for concurrent use.
	ReadCurl func(command string) (CurlRequest, error)
}

// A CurlRequest is the request that a curl command line sends.
type CurlRequest struct {
	Request *http.Request // Method, RequestURI, Host and Header
	Assumed []string      // the canonical names of the headers that curl adds by itself
	Notes   []string      // on the parts of the command that were left out
}

// liveEndpoints returns the endpoints of [Live], by path.
func (a *API) liveEndpoints() map[string]endpoint {
	if a.live.Watches == nil {
		a.live.Watches = new(monitor.Watches)
	}
	a.streams, a.plays, a.files = sse.NewStreams(MaxStreams), make(chan struct{}, placesToPlay()), make(chan struct{}, maxFiles)
	all := map[string]endpoint{}
	if a.live.Monitor != nil {
		all[trafficPath] = read(a.serveTraffic)
		all[streamPath] = read(a.serveTrafficStream)
	}
	maps.Copy(all, map[string]endpoint{
		"/v1/me":    read(a.serveMe),
		"/v1/watch": read(a.serveWatch),
		"/v1/rules": read(a.serveRules),

		"/v1/violations":           read(a.serveViolations),
		"/v1/violations.csv":       read(a.serveViolationsCSV),
		"/v1/violations/histogram": read(a.serveViolationHistogram),

		"/v1/play/presets": read(a.servePresets),
		"/v1/play":         {method: http.MethodPost, role: Read, serve: a.servePlay},
		"/v1/request":      {method: http.MethodPost, role: Read, serve: a.serveRequest},
	})
	return all
}

// read returns an endpoint of the role read.
func read(serve func(http.ResponseWriter, *http.Request) *api.Problem) endpoint {
	return endpoint{method: http.MethodGet, role: Read, serve: serve}
}

// Close ends all streams, so that their connections become free. The API serves everything
// else as before.
func (a *API) Close() {
	if a.streams != nil {
		a.streams.Close()
	}
}

// seesKeys reports whether the caller may see keys, users and addresses.
func (a *API) seesKeys(r *http.Request) bool { return a.roleOf(r) >= Operate }

// serveMe serves /v1/me: the caller, and the parts of the API that there are.
func (a *API) serveMe(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parameters(r); p != nil {
		return p
	}
	me := api.Me{
		Role: a.roleOf(r).String(), SeeKeys: a.seesKeys(r), SignIn: a.live.SignIn, Try: a.live.Try,
		Features: api.Features{Top: a.top.Tracker != nil, Overrides: a.overrides != nil, Violations: a.live.Violations != nil},
	}
	for _, k := range policy.Actions() {
		me.Actions = append(me.Actions, api.ActionKind{
			Action: string(k.Action), Some: k.Some, All: k.All, Rules: k.Rules, Key: k.Key, Limit: k.Limit, Suspends: k.Suspends,
			Label: k.Label, Choice: k.Choice, Verb: k.Verb, Count: k.Count, Made: k.Made, Effect: k.Effect, EffectAll: k.EffectAll,
			Notice: k.Notice, Color: k.Color,
		})
	}
	for _, k := range policy.Algorithms() {
		me.Algorithms = append(me.Algorithms, api.AlgorithmKind(k))
		me.Reasons = append(me.Reasons, k.Reason)
	}
	me.Reasons = append(me.Reasons, mete.ReasonMissingAttribute, mete.ReasonBlocked)
	if a.live.Name != nil {
		me.Name = a.live.Name(r)
	}
	if a.live.Monitor != nil {
		state := a.live.Monitor.State()
		me.Version, me.Started, me.Instance = state.Version, state.Started, state.Instance
	}
	return serveJSON(w, me)
}
